"""Pinned versions that have no other home (Go modules are in go.mod and go.sum).

MODULE.bazel names the same versions; //testing/build holds the two together.
"""

# The oldest Go that builds this tree: the "go" line of go.mod. Any newer one will do.
GO_MINIMUM = "1.26"

# The hashes are those of the Go module proxy: go.sum's "h1:" of the module's files.
RULES_GO_VERSION = "v0.65.0"
RULES_GO_SUM = "h1:oHAvkNIMaOhguFSCHi0bCoUhz2390srk4U0rTn9mqBc="
GAZELLE_VERSION = "v0.54.0"
GAZELLE_SUM = "h1:BtOU6xkQjZmXVcrxirX3SwUq0PCp9FGls8foOZj5Eu0="
