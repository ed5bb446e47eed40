package outbox

import (
	"bytes"
	"context"
	"io"
	"slices"
	"strings"

	"github.com/writ-runtime/writ/go/artifact"
	"github.com/writ-runtime/writ/go/canonical"
	"github.com/writ-runtime/writ/go/operation"
)

// PublicationKind is the registered kind of a Publication.
const PublicationKind = "writ.publication.v1"

// The files of every published folder beside the outputs, which stand below outputsFolder.
const (
	manifestName  = "manifest.json"
	proposalName  = "proposal.json"
	readmeName    = "README.md"
	changesName   = "changes.diff"
	outputsFolder = "files"
)

// Publication is the manifest.json of a published folder: every other file in it, sorted
// by path.
type Publication struct {
	Kind     string           `json:"kind"`
	Proposal canonical.Digest `json:"proposal"`
	Effector operation.Kind   `json:"effector"`
	Files    []File           `json:"files"`
}

// entry is a file of a folder that is to appear, with where its bytes come from.
type entry struct {
	File
	open func(ctx context.Context) (io.ReadCloser, error)
}

// content is a folder that is to appear.
type content struct {
	entries []entry
	// manifest are the bytes of manifest.json.
	manifest []byte
	// exact says that nothing but these very bytes is the folder; otherwise another
	// manifest of the same proposal is, since what a program like git writes may change
	// with its version.
	exact bool
	p     Proposal
	id    canonical.Digest
}

// newContent is the folder of a proposal: its outputs from the store, itself, and whatever
// else is given as bytes by name.
func newContent(p Proposal, store *artifact.Store, more map[string][]byte) (*content, error) {
	id, err := p.Digest()
	if err != nil {
		return nil, err
	}
	raw, err := canonical.Marshal(p)
	if err != nil {
		return nil, err
	}
	c := &content{p: p, id: id, exact: more[changesName] == nil}
	for _, f := range p.Files {
		at := f
		at.Path = outputsFolder + "/" + f.Path
		c.entries = append(c.entries, entry{at, func(ctx context.Context) (io.ReadCloser, error) { return store.Open(ctx, f.Digest) }})
	}
	add := func(name string, b []byte) {
		c.entries = append(c.entries, entry{File{Path: name, Digest: canonical.Sum(b), Size: int64(len(b))},
			func(context.Context) (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(b)), nil }})
	}
	add(proposalName, raw)
	for name, b := range more {
		add(name, b)
	}
	slices.SortFunc(c.entries, func(a, b entry) int { return strings.Compare(a.Path, b.Path) })
	m := Publication{Kind: PublicationKind, Proposal: id, Effector: p.Effector}
	for _, e := range c.entries {
		m.Files = append(m.Files, e.File)
	}
	c.manifest, err = canonical.Marshal(m)
	return c, err
}
