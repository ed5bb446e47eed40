package retention

import (
	"slices"
	"strconv"
	"strings"

	"github.com/writ-runtime/writ/go/canonical"
	"github.com/writ-runtime/writ/go/lifecycle"
	"github.com/writ-runtime/writ/go/protocol"
	"github.com/writ-runtime/writ/go/workorder"
)

// ManifestKind is the registered kind of a Manifest.
const ManifestKind = "writ.retained.v1"

// The names in the folder of what is kept. A file whose path is a plain one stands under
// that path in filesFolder; every other stands in oddFolder under a number, for a name can
// hold whatever a tool wants a person or a terminal to take it for.
const (
	manifestName = "manifest.json"
	filesFolder  = "files"
	oddFolder    = "odd"
)

// maxManifest bounds a manifest in bytes: a path of a thousand bytes for each of fifty
// thousand files.
const maxManifest = 64 << 20

// Order is what a workspace is kept for, under which policy and within which bounds.
type Order struct {
	Attempt workorder.AttemptID
	Bundle  canonical.Digest
	// Resource is the environment's name, and that of the folder.
	Resource string
	Policy   protocol.RetentionParameters
	// Files bounds files and folders together, Bytes the sum of the files' sizes: the limits
	// that the environment's manifest had.
	Files, Bytes int64
}

// Manifest is the manifest.json of what is kept of one workspace.
type Manifest struct {
	Kind     string                       `json:"kind"`
	Attempt  workorder.AttemptID          `json:"attempt"`
	Bundle   canonical.Digest             `json:"bundle"`
	Resource string                       `json:"resource"`
	Policy   protocol.RetentionParameters `json:"policy"`
	At       lifecycle.Observation        `json:"at"`
	Until    lifecycle.Observation        `json:"until"`
	Bytes    int64                        `json:"bytes"`
	// Files are all files of the workspace, sorted by path; folders are those that hold no
	// file, which are not made.
	Files   []File   `json:"files"`
	Folders []string `json:"empty_folders"`
}

// File is one file of the workspace.
type File struct {
	// Path is what the workload called it, and may hold any characters; At is where it
	// stands beside the manifest.
	Path   string           `json:"path"`
	At     string           `json:"at"`
	Size   int64            `json:"size"`
	Digest canonical.Digest `json:"digest"`
}

// result is what the receipt of the keeping says of a manifest with the given bytes.
func (m Manifest) result(raw []byte) protocol.Retention {
	return protocol.Retention{
		Policy: m.Policy, At: m.At, Until: m.Until, Files: int64(len(m.Files)), Bytes: m.Bytes, Manifest: canonical.Sum(raw),
	}
}

// place says where each file stands.
func place(files []File) {
	odd := 0
	for i := range files {
		if protocol.CheckPath(files[i].Path) == nil {
			files[i].At = filesFolder + "/" + files[i].Path
			continue
		}
		odd++
		files[i].At = oddFolder + "/" + strconv.Itoa(odd)
	}
}

// emptyFolders are those of the folders that no file lies beneath.
func emptyFolders(folders []string, files []File) []string {
	holding := map[string]bool{}
	for _, f := range files {
		for at := f.Path; strings.Contains(at, "/"); {
			at = at[:strings.LastIndexByte(at, '/')]
			holding[at] = true
		}
	}
	empty := slices.DeleteFunc(folders, func(f string) bool { return holding[f] })
	slices.Sort(empty)
	return append([]string{}, empty...)
}

// parse reads a manifest that was written here.
func parse(raw []byte) (Manifest, error) {
	var m Manifest
	v, err := canonical.Parse(raw, canonical.Limits{Bytes: maxManifest, Depth: 8, Values: 8_000_000})
	if err == nil {
		err = v.Decode(&m)
	}
	return m, err
}
