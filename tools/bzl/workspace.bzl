"""Declares what has to exist before @io_bazel_rules_go can be loaded (WORKSPACE, Bazel 4.2.3 only)."""

load("//tools/bzl:go_module.bzl", "gazelle_repository", "go_deps", "go_module_repository")
load("//tools/bzl:rules_go_compat.bzl", "RULES_GO_SUBSTITUTIONS")
load("//tools/bzl:shims.bzl", "files_repository", "system_repository")
load("//tools/bzl:versions.bzl", "GAZELLE_SUM", "GAZELLE_VERSION", "RULES_GO_SUM", "RULES_GO_VERSION")

def _forward(rules):
    """A .bzl file with a macro for each of Bazel's own rules."""
    return "\n".join(["def %s(**kwargs):\n    native.%s(**kwargs)\n" % (rule, rule) for rule in rules])

def bootstrap():
    """Declares rules_go and the few repositories that it and Bazel's own tools load."""

    # Debian's bazel-skylib.
    system_repository(
        name = "bazel_skylib",
        path = "/usr/share/bazel/tools/skylib",
    )

    # Bazel's own tools load the first two, and Bazel 4's defaults for them are
    # downloads. Bazel's built-in rules serve.
    files_repository(
        name = "rules_cc",
        files = {
            "BUILD": "",
            "cc/BUILD": "",
            "cc/defs.bzl": _forward(["cc_binary", "cc_import", "cc_library", "cc_test", "cc_toolchain", "cc_toolchain_suite"]),
        },
    )
    files_repository(
        name = "rules_java",
        files = {
            "BUILD": "",
            "java/BUILD": "",
            "java/defs.bzl": _forward(["java_binary", "java_import", "java_library", "java_runtime", "java_test", "java_toolchain"]),
        },
    )
    files_repository(
        name = "rules_shell",
        files = {
            "BUILD": "",
            "shell/BUILD": "",
            "shell/sh_test.bzl": _forward(["sh_test"]),
        },
    )

    # Bazel 4 has no optional toolchains: platforms without cgo (wasip1) get an empty C++ one.
    files_repository(
        name = "no_cc_toolchain",
        files = {
            "BUILD": """load(":empty.bzl", "empty_toolchain")

empty_toolchain(name = "impl")

toolchain(
    name = "toolchain",
    target_compatible_with = ["@io_bazel_rules_go//go/toolchain:cgo_off"],
    toolchain = ":impl",
    toolchain_type = "@bazel_tools//tools/cpp:toolchain_type",
)
""",
            "empty.bzl": """def _impl(ctx):
    return [platform_common.ToolchainInfo()]

empty_toolchain = rule(implementation = _impl)
""",
        },
    )
    native.register_toolchains("@no_cc_toolchain//:toolchain")

    # Every test rule names these; Bazel 4's default is a download. The merger is
    # enough for one go_test's lcov file (bazel-testlogs/.../coverage.dat).
    files_repository(
        name = "remote_coverage_tools",
        files = {
            "BUILD": """package(default_visibility = ["//visibility:public"])

filegroup(name = "coverage_report_generator")

sh_binary(name = "lcov_merger", srcs = ["lcov_merger.sh"])
""",
            "lcov_merger.sh": """#!/bin/sh
for arg; do
    case "$arg" in
    --coverage_dir=*) dir=${arg#*=} ;;
    --output_file=*) out=${arg#*=} ;;
    esac
done
find "$dir" -name "*.dat" -size +0 -exec cat {} + >"$out"
""",
        },
    )

    # Only the provider that rules_go looks for.
    files_repository(
        name = "package_metadata",
        files = {
            "BUILD": "",
            "providers/BUILD": "",
            "providers/package_metadata_info.bzl": 'PackageMetadataInfo = provider(fields = ["metadata"])\n',
        },
    )

    go_module_repository(
        name = "io_bazel_rules_go",
        importpath = "github.com/bazelbuild/rules_go",
        version = RULES_GO_VERSION,
        sum = RULES_GO_SUM,
        substitutions = RULES_GO_SUBSTITUTIONS,
    )
    gazelle_repository(
        name = "bazel_gazelle",
        importpath = "github.com/bazelbuild/bazel-gazelle",
        version = GAZELLE_VERSION,
        sum = GAZELLE_SUM,
    )
    go_deps(
        name = "go_deps",
        go_mod = "//:go.mod",
        go_sum = "//:go.sum",
        workspace = "writ",
    )
