package faultfs

import (
	"maps"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
)

// sector is what a disk writes whole or not at all, in bytes.
const sector = 512

// Loss is what a power loss does to what was not synced.
type Loss int

// The losses. A real disk loses some of it; the other two are the ends of that.
const (
	LoseNothing Loss = iota // as after SIGKILL
	LoseEverything
	LoseSome // each call, and of a write each sector, on its own
)

// String names the loss.
func (l Loss) String() string { return []string{"nothing", "everything", "some"}[l] }

// Disk is what is durable of a folder, as calls go by.
type Disk struct {
	loss    Loss
	rng     *rand.Rand
	entries map[string]*entry
}

// entry is a file or folder. A removed one stays until its removal is durable.
type entry struct {
	folder, removed bool
	// listed says that the name of it is durable in the folder above.
	listed bool
	// durable are the bytes as of the last sync, pending the calls since.
	durable []byte
	pending []Op
}

// NewDisk returns an empty disk.
func NewDisk(loss Loss, seed uint64) *Disk {
	return &Disk{loss: loss, rng: rand.New(rand.NewPCG(seed, 0)), entries: map[string]*entry{}}
}

// Apply takes the next call.
func (d *Disk) Apply(op Op) {
	if op.Failed && op.Kind != Sync {
		return
	}
	e := d.entries[op.Path]
	if e == nil {
		e = new(entry)
		d.entries[op.Path] = e
	}
	switch op.Kind {
	case Create, MakeDir:
		if e.removed {
			// A new file under the old name. The old one may still be what is listed.
			e.pending = append(e.pending, Op{Kind: Truncate, Path: op.Path})
		}
		e.removed, e.folder = false, op.Kind == MakeDir
	case Write, Truncate:
		e.pending = append(e.pending, op)
	case Remove:
		e.removed = true
	case Sync:
		if op.Failed {
			// What could not be written is dropped, and the kernel forgets that it ever was
			// dirty: no later sync brings it back.
			e.durable, e.pending = d.bytes(e, d.loss), nil
			return
		}
		e.durable, e.pending = d.bytes(e, LoseNothing), nil
		if e.folder || op.Path == "." {
			d.list(op.Path)
		}
	}
}

// list makes the names in a folder durable.
func (d *Disk) list(folder string) {
	for path, e := range d.entries {
		if path == "." || filepath.Dir(path) != folder {
			continue
		}
		if e.removed {
			delete(d.entries, path)
		} else {
			e.listed = true
		}
	}
}

// Cut returns the files that are there after the power is cut now.
func (d *Disk) Cut() map[string][]byte {
	left := map[string][]byte{}
	gone := []string{}
	for _, path := range slices.Sorted(maps.Keys(d.entries)) {
		e := d.entries[path]
		lost := path != "." && (e.removed && (!e.listed || d.keeps(d.loss)) || !e.removed && !e.listed && !d.keeps(d.loss)) ||
			slices.ContainsFunc(gone, func(folder string) bool { return strings.HasPrefix(path, folder+"/") })
		switch {
		case lost:
			gone = append(gone, path)
		case !e.folder && path != ".":
			left[path] = d.bytes(e, d.loss)
		}
	}
	return left
}

// keeps decides whether something that was not synced is durable all the same.
func (d *Disk) keeps(l Loss) bool { return l == LoseNothing || l == LoseSome && d.rng.IntN(2) == 0 }

// bytes returns the bytes of a file with what is kept of its pending calls.
func (d *Disk) bytes(e *entry, l Loss) []byte {
	b := slices.Clone(e.durable)
	for _, op := range e.pending {
		if op.Kind == Truncate {
			if d.keeps(l) {
				b = resize(b, op.Offset)
			}
			continue
		}
		torn := l == LoseSome && d.rng.IntN(4) == 0
		if !torn && !d.keeps(l) {
			continue
		}
		for at := int64(0); at < int64(len(op.Data)); {
			// Sectors are those of the disk, not of the write.
			end := min(int64(len(op.Data)), at+sector-(op.Offset+at)%sector)
			if !torn || d.keeps(l) {
				b = put(b, op.Data[at:end], op.Offset+at)
			}
			at = end
		}
	}
	return b
}

func put(b, data []byte, offset int64) []byte {
	if end := offset + int64(len(data)); end > int64(len(b)) {
		b = resize(b, end)
	}
	copy(b[offset:], data)
	return b
}

func resize(b []byte, size int64) []byte {
	if size <= int64(len(b)) {
		return b[:size]
	}
	return append(b, make([]byte, size-int64(len(b)))...)
}
