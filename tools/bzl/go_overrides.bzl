"""What single modules need beyond go.mod: module path -> extra attributes of its go_repository."""

GO_OVERRIDES = {
    # rules_go's nogo uses an internal package of it.
    "golang.org/x/tools": {"build_directives": ["gazelle:go_visibility @io_bazel_rules_go//:__subpackages__"]},
}
