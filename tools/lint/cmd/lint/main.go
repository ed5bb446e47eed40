// Command lint runs our own analyzers in the quick loop; under Bazel the same ones run in
// every build (nogo, //tools/lint:nogo), together with those of `go vet`.
//
//	go run ./tools/lint/cmd/lint ./...
package main

import (
	"golang.org/x/tools/go/analysis/multichecker"

	"github.com/writ-runtime/writ/tools/lint/importwall"
	"github.com/writ-runtime/writ/tools/lint/noglobals"
	"github.com/writ-runtime/writ/tools/lint/noinit"
	"github.com/writ-runtime/writ/tools/lint/nopanic"
	"github.com/writ-runtime/writ/tools/lint/purity"
	"github.com/writ-runtime/writ/tools/lint/zeropermit"
)

func main() {
	multichecker.Main(
		importwall.Analyzer,
		noglobals.Analyzer,
		noinit.Analyzer,
		nopanic.Analyzer,
		purity.Analyzer,
		zeropermit.Analyzer,
	)
}
