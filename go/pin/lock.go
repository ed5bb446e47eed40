// Package pin holds the lock files and turns what they name into bytes that cannot change any more.
//
// A lock file names every binary, WebAssembly module and policy bundle by SHA-256. Nothing is run or loaded
// from a path: the file is opened once, hashed while it is copied into memory, and that memory is what runs.
package pin

import (
	"path"
	"strings"

	"github.com/writ-runtime/writ/go/canonical"
	"github.com/writ-runtime/writ/go/reason"
)

// The lock files of a distribution, beside what they name.
const (
	AdaptersFile = "adapters.lock.json" // kinds adapter and worker
	ToolsFile    = "tools.lock.json"    // kind tool
	PoliciesFile = "policies.lock.json" // kind policy
)

// The kinds of the three documents.
const (
	AdaptersKind = "writ.lock.adapters.v1"
	ToolsKind    = "writ.lock.tools.v1"
	PoliciesKind = "writ.lock.policies.v1"
)

// MaxSize is the largest file in bytes that a lock file may name: 256 MiB.
const MaxSize = 256 << 20

// maxLockSize bounds a lock file itself: 4 MiB.
const maxLockSize = 4 << 20

// Lock is one lock file.
type Lock struct {
	Kind    string  `json:"kind"`
	Entries []Entry `json:"entries"`
}

// Entry pins one file.
type Entry struct {
	// Name and Kind ("tool", "adapter", "worker", "policy") and Platform together are unique in a lock file.
	Name    string `json:"name"`
	Kind    string `json:"kind"`
	Version string `json:"version"`
	// Platform is GOOS/GOARCH, for example "linux/amd64" or "wasip1/wasm"; "any" for a policy.
	Platform string `json:"platform"`
	// Path is relative to the lock file, with slashes, and stays beneath it.
	Path string `json:"path"`
	// Digest is over exactly the bytes of the file, Size their number.
	Digest canonical.Digest `json:"sha256"`
	Size   int64            `json:"size"`
	// Manifest is what the vendor declares about the file (capabilities, arguments). It is part of the lock
	// file, so its digest covers it. Empty where there is none.
	Manifest canonical.Raw `json:"manifest,omitempty"`
}

// parseLock reads a lock file strictly. kind is the document kind that the file has to carry; where names it in
// refusals.
func parseLock(data []byte, kind, where string) (Lock, error) {
	var l Lock
	if err := canonical.Decode(data, &l); err != nil {
		return Lock{}, reason.New(reason.PinMalformed, "the lock file is malformed", where, rebuild).Because(err)
	}
	if l.Kind != kind {
		return Lock{}, reason.New(reason.PinMalformed, "the lock file is of kind "+quote(l.Kind)+", not "+kind, where, rebuild)
	}
	seen := map[string]bool{}
	for _, e := range l.Entries {
		if err := e.check(where); err != nil {
			return Lock{}, err
		}
		id := e.Kind + " " + e.Name + " " + e.Platform
		if seen[id] {
			return Lock{}, reason.New(reason.PinMalformed, "the lock file names "+id+" twice", where, rebuild)
		}
		seen[id] = true
	}
	return l, nil
}

func (e Entry) check(where string) error {
	bad := func(what string) error {
		return reason.New(reason.PinMalformed, "entry "+quote(e.Name)+" "+what, where, rebuild)
	}
	switch {
	case e.Name == "" || e.Kind == "" || e.Version == "" || e.Platform == "":
		return bad("lacks a name, kind, version or platform")
	case !e.Digest.Valid():
		return bad("has a malformed digest")
	case e.Size <= 0 || e.Size > MaxSize:
		return bad("has a size outside 1 to 256 MiB")
	case e.Path == "" || path.IsAbs(e.Path) || path.Clean(e.Path) != e.Path || e.Path == "." || e.Path == ".." ||
		strings.HasPrefix(e.Path, "../") || strings.ContainsAny(e.Path, "\\\x00"):
		return bad("has a path that is not clean, relative and beneath the lock file: " + quote(e.Path))
	}
	return nil
}

const rebuild = "build the distribution again; its lock files are written by the build"
