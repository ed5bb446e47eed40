//go:build tools

// Package lint keeps in go.mod what rules_go's nogo is built from. No code of ours imports
// it, so `go mod tidy` would drop it.
package lint

import (
	_ "github.com/aymanbagabas/go-udiff"
	_ "golang.org/x/tools/go/analysis"
	_ "golang.org/x/tools/go/gcexportdata"
)
