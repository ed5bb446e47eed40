"""What rules_go 0.65.0 needs changed to load and work under Bazel 4.2.3.

file(s) -> [old text, new text, ...]. Each old text must occur in the file, or
the fetch fails. Nothing here is about the Go version: rules_go 0.65.0 knows
Go 1.26 as it is.
"""

RULES_GO_SUBSTITUTIONS = {
    # Bazel 4 writes the main repository as "//", which in @io_bazel_rules_nogo is that one.
    "go/private/nogo.bzl": [
        'return "Label(\\"{}\\")".format(label)', 'return "Label(\\"@{}\\")".format(label)',
    ],
    # Bazel >= 5: read_user_netrc, use_netrc, rctx.os.arch, attr.string_keyed_label_dict.
    "go/private/sdk.bzl": [
        ', "read_user_netrc", "use_netrc")', ")",
        "auth = use_netrc(read_user_netrc(ctx), urls, {})", "auth = {}",
        "ctx.os.arch", 'ctx.execute(["uname", "-m"]).stdout.strip()',
        "attr.string_keyed_label_dict(", "attr.string_dict(",
    ],
    # Bazel >= 5: toolchain(target_settings). One SDK, so nothing to choose.
    "go/private/go_toolchain.bzl": [
        """            target_settings = [
                ":" + prefix + "sdk_name_setting",
                ":" + prefix + "sdk_version_setting",
            ],
""", "",
    ],
    # Constraint values that Bazel 4's own @platforms lacks: rules_go then defines them.
    "go/private/platforms.bzl": [
        '    "netbsd": "@platforms//os:netbsd",\n', "",
        '    "ppc64le": "@platforms//cpu:ppc64le",\n', "",
        '    "loong64": "@platforms//cpu:loongarch64",\n', "",
    ],
    # Bazel >= 6: optional toolchains, dict union, Label.repo_name. Bazel >= 5: runfiles.merge_all.
    # The C++ toolchain comes from an attribute, and @no_cc_toolchain stands in where there is none.
    "go/private/context.bzl": [
        'load("@rules_cc//cc/common:cc_common.bzl", "cc_common")\n', "",
        "@rules_cc//cc:action_names.bzl", "@bazel_tools//tools/build_defs/cc:action_names.bzl",
        '    "@rules_cc//cc:find_cc_toolchain.bzl",\n    "find_cc_toolchain",', '    "@bazel_tools//tools/cpp:toolchain_utils.bzl",\n    find_cc_toolchain = "find_cpp_toolchain",',
        "find_cc_toolchain(ctx, mandatory = False)", "find_cc_toolchain(ctx)",
        "config_common.toolchain_type(CPP_TOOLCHAIN_TYPE, mandatory = False)", "str(CPP_TOOLCHAIN_TYPE)",
        "CGO_ATTRS = {\n", 'CGO_ATTRS = {\n    "_cc_toolchain": attr.label(default = "@bazel_tools//tools/cpp:current_cc_toolchain"),\n',
        "attrs = attrs | CGO_ATTRS", "attrs = dict(attrs, **CGO_ATTRS)",
        "scope.repo_name != label.repo_name", "scope.workspace_name != label.workspace_name",
        "    return go._ctx.runfiles(transitive_files = files).merge_all(\n", "    return _merge_all(\n        go._ctx.runfiles(transitive_files = files),\n",
        "def _collect_runfiles(", "def _merge_all(runfiles, others):\n    for other in others:\n        runfiles = runfiles.merge(other)\n    return runfiles\n\ndef _collect_runfiles(",
    ],
    "go/private/actions/archive.bzl": [
        "source.runfiles.merge_all(files)", "source.runfiles\n    for f in files:\n        runfiles = runfiles.merge(f)",
    ],
    # Bazel >= 6: actions.run(toolchain).
    ("go/private/actions/baseline_coverage.bzl go/private/actions/compilepkg.bzl go/private/actions/link.bzl " +
     "go/private/actions/preprofile.bzl go/private/actions/stdlib.bzl go/private/rules/nogo.bzl " +
     "go/private/rules/test.bzl extras/gomock.bzl"): [
        "        toolchain = GO_TOOLCHAIN_LABEL,\n", "",
    ],
    # Bazel >= 5: %{label} in a progress message.
    "go/private/actions/compilepkg.bzl": [
        '"Running nogo on %{label}"', '"Running nogo on %s" % go.label',
        '"Validating nogo output for %{label}"', '"Validating nogo output for %s" % go.label',
    ],
    # Bazel >= 5: lambda.
    "go/private/actions/link.bzl": [
        "        exec_group = exec_group,\n", "",
        "map_each = lambda d: _format_imports(d, archive.data.file),\n        allow_closure = True,", "map_each = _format_imports,",
        "def _format_imports(d, main_archive_file):\n    if d.file == main_archive_file:", 'def _format_imports(d):\n    if d.importmap == "main":',
    ],
    # Bazel >= 5: exec_groups without a flag. Bazel >= 5.3: RunEnvironmentInfo.
    # Bazel >= 6: optional toolchains, actions.run(toolchain).
    "go/private/rules/binary.bzl": [
        'load("@rules_cc//cc/common:cc_common.bzl", "cc_common")\n', "",
        'load("@rules_cc//cc/common:cc_info.bzl", "CcInfo")\n', "",
        '    toolchains = [config_common.toolchain_type("@bazel_tools//tools/sh:toolchain_type", mandatory = False)],\n', "",
        'ctx.toolchains["@bazel_tools//tools/sh:toolchain_type"]', "None",
        "            toolchain = None,\n", "",
        "        providers.append(RunEnvironmentInfo(environment = env))\n", "",
        """        "exec_groups": {
            "go_link": exec_group(
                toolchains = [GO_TOOLCHAIN] + CGO_TOOLCHAINS,
            ),
        },
""", "",
        '        link_exec_group = "go_link",\n', "",
    ],
    "go/private/rules/test.bzl": [
        "ctx.label.repo_name", "ctx.label.workspace_name",
        "RunEnvironmentInfo(env, ctx.attr.env_inherit)", "testing.TestEnvironment(env)",
        """    "exec_groups": {
        "go_link": exec_group(
            toolchains = [GO_TOOLCHAIN] + CGO_TOOLCHAINS,
        ),
    },
""", "",
        '        link_exec_group = "go_link",\n', "",
        # Bazel >= 5: the coverage fragment.
        """            default = configuration_field(fragment = "coverage", name = "output_generator"),
            cfg = "exec",
""", """            default = "@remote_coverage_tools//:lcov_merger",
            cfg = "target",
            executable = True,
""",
    ],
    # Bazel 4 takes "//x" in a transition for the main repository.
    "go/private/rules/transition.bzl": [
        '"//go/', '"@io_bazel_rules_go//go/',
    ],
    "go/private/rules/cgo.bzl go/private/rules/cross.bzl": [
        'load("@rules_cc//cc/common:cc_info.bzl", "CcInfo")\n', "",
    ],
    # Much newer Bazel and skylib: the scope of a build setting.
    "go/config/BUILD.bazel go/private/BUILD.bazel": [
        '    scope = "universal",\n', "",
    ],
    "go/private/rules/BUILD.bazel": [
        '        scope = "universal" if setting in TOOL_INHERITED_SETTING_KEYS else None,\n', "",
    ],
    "go/private/rules/go_bin_for_host.bzl": [
        "@platforms//host:constraints.bzl", "@local_config_platform//:constraints.bzl",
    ],
}
