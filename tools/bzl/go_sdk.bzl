"""What go_rules_dependencies() and go_register_toolchains() would declare, less the downloads."""

load("@io_bazel_rules_go//go:deps.bzl", "go_host_sdk")
load("@io_bazel_rules_go//go/private:nogo.bzl", "go_register_nogo")
load("@io_bazel_rules_go//go/private:polyfill_bazel_features.bzl", "polyfill_bazel_features")

def go_sdk_and_toolchain():
    """Declares the machine's Go SDK, whatever its version, and nogo.

    No version is given, so rules_go takes what it finds. @go_deps (go_module.bzl) refuses
    a Go that is too old.
    """
    go_host_sdk(name = "go_sdk")
    go_register_nogo(
        name = "io_bazel_rules_nogo",
        includes = ["@//:__subpackages__"],
        nogo = "@//tools/lint:nogo",
    )
    polyfill_bazel_features(name = "io_bazel_rules_go_bazel_features")
