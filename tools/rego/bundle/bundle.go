// Package bundle compiles Rego policies and their data into an OPA bundle.
//
// It is the one compiler of policies here: the rego_bundle rule runs it through
// //tools/rego, `go run ./tools/dist` calls it.
package bundle

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/compile"
)

// Options says what goes into a bundle.
type Options struct {
	// Target is wasm (policy.wasm beside the sources), rego or plan.
	Target string
	// Entrypoints are the decisions that can be asked for, for example constitution/decision.
	Entrypoints []string
	// Root is the folder that Paths are relative to, so the root of the tree; "" is the
	// working directory.
	Root string
	// Paths are .rego, .json and .yaml files. They are written into the bundle, and an
	// absolute path would differ from machine to machine. A data file is merged at the
	// root of `data`, wherever it lies.
	Paths []string
}

// Build returns the bytes of the bundle, a .tar.gz. The same files give the same bytes.
func Build(ctx context.Context, o Options) ([]byte, error) {
	if len(o.Entrypoints) == 0 {
		return nil, errors.New("compile policy bundle: no entrypoint")
	}
	if len(o.Paths) == 0 {
		return nil, errors.New("compile policy bundle: no files")
	}
	var buf bytes.Buffer
	c := compile.New().
		WithTarget(o.Target).
		WithAsBundle(false).
		WithRegoVersion(ast.RegoV1).
		WithEntrypoints(o.Entrypoints...).
		WithPaths(o.Paths...).
		WithOutput(&buf)
	if o.Root != "" {
		c = c.WithFS(os.DirFS(o.Root))
	}
	if err := c.Build(ctx); err != nil {
		return nil, fmt.Errorf("compile policy bundle of %d files for %s: %w", len(o.Paths), o.Target, err)
	}
	return buf.Bytes(), nil
}
