// Package lockfile writes the release set: the files that the runtime starts or reads, in
// one folder, and the lock files that name them by digest.
//
//	adapters.lock.json   adapters/NAME, workers/NAME
//	tools.lock.json      tools/NAME.wasm
//	policies.lock.json   policies/NAME.tar.gz
//
// The dist rule of //tools/bzl calls it through cmd/lockfile, `go run ./tools/dist`
// calls it directly, so both write the same form.
package lockfile

import (
	"encoding/json"
	"fmt"
	"path"
	"regexp"
)

// Kind is what an entry is to the runtime.
type Kind string

// The kinds of entries.
const (
	Adapter Kind = "adapter" // an executor adapter binary
	Worker  Kind = "worker"  // a binary of our own that the runtime starts confined
	Tool    Kind = "tool"    // a WebAssembly module
	Policy  Kind = "policy"  // an OPA bundle
)

// Lock is a lock file.
type Lock struct {
	// Name is the file's name without .lock.json.
	Name string
	// Kinds are the kinds of entries it holds.
	Kinds []Kind
}

// Locks returns the lock files of a release set.
func Locks() []Lock {
	return []Lock{
		{Name: "adapters", Kinds: []Kind{Adapter, Worker}},
		{Name: "policies", Kinds: []Kind{Policy}},
		{Name: "tools", Kinds: []Kind{Tool}},
	}
}

// Source is one entry before it is measured.
type Source struct {
	Kind     Kind   `json:"kind"`
	Name     string `json:"name"`
	Version  string `json:"version"`
	Platform string `json:"platform"` // GOOS/GOARCH, or "any"
	Path     string `json:"path"`     // in the release set, slash-separated
	File     string `json:"source"`   // where the bytes are now
	Manifest string `json:"manifest"` // a JSON file that becomes part of the entry; "" for none
}

// Spec is what cmd/lockfile reads.
type Spec struct {
	Entries []Source `json:"entries"`
}

// Entry is one measured entry. The fields stand in the order of canonical JSON.
type Entry struct {
	Kind     Kind            `json:"kind"`
	Manifest json.RawMessage `json:"manifest,omitempty"`
	Name     string          `json:"name"`
	Path     string          `json:"path"`
	Platform string          `json:"platform"`
	SHA256   string          `json:"sha256"` // "sha256:" and hexadecimal
	Size     int64           `json:"size"`   // bytes
	Version  string          `json:"version"`
}

// names are what file systems, command lines and locks agree on.
//
//writ:immutable a compiled pattern has no state that a caller can change
var names = regexp.MustCompile(`^[a-z0-9][a-z0-9._-]*$`)

func (s Source) check() error {
	switch {
	case !names.MatchString(s.Name):
		return fmt.Errorf("%s %q: a name is lower-case letters, digits, dots and dashes", s.Kind, s.Name)
	case s.Version == "":
		return fmt.Errorf("%s %s: no version", s.Kind, s.Name)
	case s.Platform == "":
		return fmt.Errorf("%s %s: no platform", s.Kind, s.Name)
	case s.Path == "" || path.IsAbs(s.Path) || path.Clean(s.Path) != s.Path || s.Path == ".." || len(s.Path) > 2 && s.Path[:3] == "../":
		return fmt.Errorf("%s %s: path %q is not a clean path inside the release set", s.Kind, s.Name, s.Path)
	}
	return nil
}
