"""Rules for Rego policies, run by //tools/rego (OPA's Go API)."""

# What a policy may consist of: rules, and data merged at the root of `data`.
_POLICY_FILES = [".rego", ".json", ".yaml"]

# Not cfg = "exec": OPA's dependency closure would be compiled a second time, for the
# same machine. Cross-compiling policies is not a thing: a bundle has no platform.
_REGO = attr.label(default = "//tools/rego", executable = True, cfg = "target")

def _rego_bundle_impl(ctx):
    out = ctx.actions.declare_file(ctx.label.name + ".tar.gz")
    args = ctx.actions.args()
    args.add("build")
    args.add("-o", out)
    args.add("-target", ctx.attr.target)
    args.add_joined("-e", ctx.attr.entrypoints, join_with = ",")
    args.add_all(ctx.files.srcs)
    ctx.actions.run(
        executable = ctx.executable._rego,
        arguments = [args],
        inputs = ctx.files.srcs,
        outputs = [out],
        mnemonic = "RegoBundle",
        progress_message = "Compiling Rego policies of %s" % ctx.label,
    )
    return [DefaultInfo(files = depset([out]), runfiles = ctx.runfiles([out]))]

rego_bundle = rule(
    implementation = _rego_bundle_impl,
    attrs = {
        "srcs": attr.label_list(allow_files = _POLICY_FILES, mandatory = True, doc = "policies and data, without tests"),
        "entrypoints": attr.string_list(mandatory = True, doc = "the decisions to ask for, for example constitution/decision"),
        "target": attr.string(default = "wasm", values = ["wasm", "rego", "plan"]),
        "_rego": _REGO,
    },
    doc = "An OPA bundle (NAME.tar.gz) compiled from Rego files.",
)

def _quote(s):
    return "'" + s.replace("'", "'\\''") + "'"

def _rego_test_impl(ctx):
    script = ctx.actions.declare_file(ctx.label.name + ".sh")
    ctx.actions.write(
        script,
        "#!/bin/sh\nexec %s test -min %d %s\n" % (
            _quote(ctx.executable._rego.short_path),
            ctx.attr.min_coverage,
            " ".join([_quote(f.short_path) for f in ctx.files.srcs]),
        ),
        is_executable = True,
    )
    runfiles = ctx.runfiles(ctx.files.srcs).merge(ctx.attr._rego[DefaultInfo].default_runfiles)
    return [DefaultInfo(executable = script, runfiles = runfiles)]

rego_test = rule(
    implementation = _rego_test_impl,
    attrs = {
        "srcs": attr.label_list(allow_files = _POLICY_FILES, mandatory = True, doc = "policies, their data and their tests"),
        "min_coverage": attr.int(default = 0, doc = "percent of lines that the tests must reach"),
        "_rego": _REGO,
    },
    test = True,
    doc = "Runs the test_ rules of Rego files, as `opa test` does, and prints their coverage.",
)
