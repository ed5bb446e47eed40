"""The go command of the toolchain, for tests that analyse Go source."""

_GO_TOOLCHAIN = "@io_bazel_rules_go//go:toolchain"

def _go_command_impl(ctx):
    go = ctx.toolchains[_GO_TOOLCHAIN].sdk.go
    return [DefaultInfo(files = depset([go]), runfiles = ctx.runfiles([go]))]

go_command = rule(
    implementation = _go_command_impl,
    toolchains = [_GO_TOOLCHAIN],
    doc = """The file bin/go. It is a link into the machine's Go installation, so whoever follows it finds
the standard library too; a test gets its path as $(rootpath).""",
)
