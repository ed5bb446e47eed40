// Command referencelocal is the reference-local executor adapter: it runs one deterministic WebAssembly tool of the
// lock file, and nothing else. It is the executor that is there when every other one is removed, and the shortest
// example of an adapter.
package main

import (
	_ "embed"

	"github.com/writ-runtime/writ/go/sdk"
)

// manifest is the capability manifest that the lock file pins beside this binary.
//
//go:embed manifest.json
var manifest []byte

func main() {
	sdk.Serve(adapter{}, sdk.Info{Name: "reference-local", Version: "0.1.0", Capabilities: manifest})
}
