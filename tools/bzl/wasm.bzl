"""WebAssembly tools: Go programs compiled for WASI preview 1."""

load("@io_bazel_rules_go//go:def.bzl", "go_binary")

def wasm_tool(name, **kwargs):
    """A main package as NAME.wasm.

    gazelle writes it in place of go_binary where a BUILD file says
    `# gazelle:map_kind go_binary wasm_tool //tools:defs.bzl`.

    Args:
        name: the tool's name; the output is NAME.wasm.
        **kwargs: as for go_binary.
    """
    go_binary(
        name = name,
        out = name + ".wasm",
        # No symbol table and no DWARF: a third of the size, and traces still name
        # functions, which Go keeps elsewhere.
        gc_linkopts = ["-s", "-w"],
        goarch = "wasm",
        goos = "wasip1",
        pure = "on",
        **kwargs
    )
