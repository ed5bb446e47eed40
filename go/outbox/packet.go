package outbox

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/writ-runtime/writ/go/protocol"
)

// packet is the folder of a review packet: the outputs, the proposal with every digest, a
// page for a person, and the changes against the base where a repository is named. The
// repository is only read.
func (b *Outbox) packet(from *accepted, p Proposal) (place, deed, error) {
	to, err := find(b.destinations.Review, p.Destination)
	if err != nil {
		return place{}, nil, err
	}
	at := place{Path: to.Path}
	if p.Repository.IsZero() {
		return at, b.folder(to.Path, p, func(context.Context, bool) (*content, error) {
			return newContent(p, b.store, map[string][]byte{readmeName: readme(from, p)})
		}), nil
	}
	r, err := find(b.destinations.Repositories, p.Repository)
	at.Repository = r.Path
	return at, b.folder(to.Path, p, func(ctx context.Context, asking bool) (*content, error) {
		changes := []byte{}
		if !asking {
			var err error
			if changes, err = b.changes(ctx, r.Path, p); err != nil {
				return nil, err
			}
		}
		return newContent(p, b.store, map[string][]byte{readmeName: readme(from, p), changesName: changes})
	}), err
}

// changes is what the proposal would change on its base, as git shows it.
func (b *Outbox) changes(ctx context.Context, path string, p Proposal) (_ []byte, err error) {
	r, err := openRepository(path)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	w, err := b.work(r)
	if err != nil {
		return nil, err
	}
	defer w.close()
	tree, err := w.tree(ctx, b.store, p)
	if err != nil {
		return nil, err
	}
	out, err := w.run(ctx, own, nil, "diff-tree", "-p", "--binary", "--full-index", "--no-renames", "--no-ext-diff", "--no-textconv", "--no-color", p.Base, tree)
	if out == nil {
		out = []byte{}
	}
	return out, err
}

// readme is the page for a person. Whatever others wrote stands indented, which Markdown
// shows as it is.
func readme(from *accepted, p Proposal) []byte {
	var s strings.Builder
	quote := func(text string) {
		for line := range strings.Lines(strings.TrimRight(text, "\n") + "\n") {
			s.WriteString("    " + line)
		}
		s.WriteString("\n")
	}
	s.WriteString("# For review\n\nAn attempt proposes what follows. Nothing of it has been taken over anywhere.\n\n")
	quote(p.Title)
	if p.Message != "" {
		s.WriteString("It says:\n\n")
		quote(p.Message)
	}
	fmt.Fprintf(&s, "## Where it comes from\n\n| | |\n|---|---|\n| attempt | `%s` |\n| work order | `%s` |\n| attempt bundle | `%s` |\n| mode | %s |\n| result | `%s` |\n| artifact manifest | `%s` |\n",
		p.Attempt, from.state.WorkOrder, from.bundle.Digest(), from.bundle.Bundle().Mode, p.Result, p.Manifest)
	if p.Base != "" {
		fmt.Fprintf(&s, "| repository | `%s` |\n| base commit | `%s` |\n", p.Repository, p.Base)
	}
	if len(p.Receipts) > 0 {
		s.WriteString("\n## Receipts\n\n| receipt | digest |\n|---|---|\n")
		for _, r := range p.Receipts {
			fmt.Fprintf(&s, "| %s | `%s` |\n", r.Name, r.Digest)
		}
	}
	s.WriteString("\n## Files\n\nThey stand below `files/`; `manifest.json` names every file of this folder.\n\n")
	for _, f := range p.Files {
		kind := ""
		if f.Executable {
			kind = ", a program"
		}
		fmt.Fprintf(&s, "    %s\n    %s, %d bytes%s\n\n", protocol.EscapePath(f.Path), f.Digest, f.Size, kind)
	}
	if !p.Repository.IsZero() {
		s.WriteString("## Changes\n\n`changes.diff` is what it would change on the base commit. To try it, in the repository:\n\n" +
			"    git switch --detach " + p.Base + "\n    git apply --index PATH/OF/THIS/FOLDER/changes.diff\n\n")
	}
	fmt.Fprintf(&s, "The receipts are not in this folder. To check them, ask whoever holds the state folder of the attempt to run:\n\n"+
		"    writ verify %[1]s\n    writ receipts --json %[1]s\n", p.Attempt)
	return []byte(s.String())
}
