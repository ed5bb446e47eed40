package kernel

import (
	"fmt"
	"io/fs"

	"github.com/writ-runtime/writ/go/attestation"
	"github.com/writ-runtime/writ/go/lifecycle"
	"github.com/writ-runtime/writ/go/operation"
)

// Open returns a kernel under the registries of the given files, normally those that
// the schemas package embeds.
func Open(fsys fs.FS) (Kernel, error) {
	names, err := fs.Glob(fsys, "transitions/*.json")
	if err != nil {
		return Kernel{}, err
	}
	var machines [][]byte
	for _, name := range names {
		b, err := fs.ReadFile(fsys, name)
		if err != nil {
			return Kernel{}, err
		}
		machines = append(machines, b)
	}
	transitions, err := lifecycle.NewRegistry(machines...)
	if err != nil {
		return Kernel{}, err
	}
	b, err := fs.ReadFile(fsys, "effect-classes.v1.json")
	if err != nil {
		return Kernel{}, err
	}
	classes, err := operation.ParseClasses(b)
	if err != nil {
		return Kernel{}, err
	}
	if err := transitions.Fits(classes); err != nil {
		return Kernel{}, err
	}
	if b, err = fs.ReadFile(fsys, "attestation-facts.v1.json"); err != nil {
		return Kernel{}, err
	}
	facts, err := attestation.ParseTable(b)
	if err != nil {
		return Kernel{}, fmt.Errorf("attestation facts: %w", err)
	}
	return New(transitions, classes, facts), nil
}
