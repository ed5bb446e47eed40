package host

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/writ-runtime/writ/go/artifact"
	"github.com/writ-runtime/writ/go/journal/sqlite"
	"github.com/writ-runtime/writ/go/kernel"
	"github.com/writ-runtime/writ/go/ledger"
	"github.com/writ-runtime/writ/go/outbox"
	"github.com/writ-runtime/writ/go/policy"
	"github.com/writ-runtime/writ/go/projection"
	"github.com/writ-runtime/writ/go/reason"
	"github.com/writ-runtime/writ/go/retention"
	"github.com/writ-runtime/writ/schemas"
)

// Reading is a state folder that is only read; a writer may be at work in it.
type Reading struct {
	Journal   *sqlite.Store
	Artifacts *artifact.Store
	Kernel    kernel.Kernel
	state     string
}

// Read opens a state folder for reading. The error is a *reason.Refusal where there is
// none.
func Read(ctx context.Context, state string) (*Reading, error) {
	k, err := kernel.Open(schemas.FS)
	if err != nil {
		return nil, err
	}
	if err := orphaned(state); err != nil {
		return nil, err
	}
	j, err := sqlite.Open(ctx, state, sqlite.Options{})
	if err != nil {
		return nil, err
	}
	a, err := artifact.Open(state, j, artifact.Options{})
	if err != nil {
		return nil, err
	}
	return &Reading{Journal: j, Artifacts: a, Kernel: k, state: state}, nil
}

// Writer says who appends to the journal now.
func (r *Reading) Writer() sqlite.Writer { return sqlite.FindWriter(r.state) }

// orphaned refuses a state folder without a journal that holds what only a journal can account for: to begin another one
// there would bury that the first is gone.
func orphaned(state string) error {
	if info, err := os.Lstat(filepath.Join(state, "journal.db")); err == nil && info.Size() > 0 || err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	for _, folder := range []string{"cas", "workspaces", retention.Folder, outbox.ShadowFolder} {
		found := ""
		// What cannot be read says nothing.
		_ = filepath.WalkDir(filepath.Join(state, folder), func(path string, d fs.DirEntry, err error) error {
			if err == nil && d.Type().IsRegular() {
				found = path
				return fs.SkipAll
			}
			return nil
		})
		if found != "" {
			return reason.New(reason.JournalGone, "the journal is not there, or is empty, and what was recorded in it is", found,
				"put journal.db back from a copy, or name another folder with --state; to begin anew here, move away what is left of the old one")
		}
	}
	return nil
}

// Close closes the journal.
func (r *Reading) Close() error { return r.Journal.Close() }

// Index builds the index of the whole journal.
func (r *Reading) Index(ctx context.Context) (*projection.Index, error) {
	return projection.Build(ctx, r.Journal, r.Kernel.Transitions())
}

// Attempt finds the attempt that an id, or the beginning of one, names: of the attempt
// itself or of its work order.
func (r *Reading) Attempt(ctx context.Context, id string) (kernel.State, projection.Attempt, error) {
	index, err := r.Index(ctx)
	if err != nil {
		return kernel.State{}, projection.Attempt{}, err
	}
	one, found := index.Find(id)
	if id == "" || one == nil {
		var names []string
		for _, a := range found {
			names = append(names, string(a.ID))
		}
		if order, _ := index.FindOrder(id); order != nil {
			return kernel.State{}, projection.Attempt{}, reason.New(reason.IDUnknown, "no attempt was made at the work order yet", string(order.ID),
				"see what it waits for with `writ show "+string(order.ID)+"`")
		}
		return kernel.State{}, projection.Attempt{}, notOne(index, id, "attempts", names)
	}
	s, err := ledger.Load(ctx, r.Journal, r.Kernel, one.ID)
	return s, *one, err
}

// Order finds the work order that an id, or the beginning of one, names, with the index.
func (r *Reading) Order(ctx context.Context, id string) (projection.Order, *projection.Index, error) {
	index, err := r.Index(ctx)
	if err != nil {
		return projection.Order{}, nil, err
	}
	one, found := index.FindOrder(id)
	if id == "" || one == nil {
		var names []string
		for _, o := range found {
			names = append(names, string(o.ID))
		}
		return projection.Order{}, nil, notOne(index, id, "work orders", names)
	}
	return *one, index, nil
}

// notOne refuses an id that names nothing, or several.
func notOne(index *projection.Index, id, what string, found []string) error {
	if id != "" && len(found) > 0 {
		n := len(found)
		if n > 5 {
			found = append(found[:5], "…")
		}
		return reason.New(reason.IDAmbiguous, fmt.Sprintf("%d %s have an id that begins with %q", n, what, id), strings.Join(found, ", "), "type more of it")
	}
	remedy := "list what there is with `writ status`"
	if len(index.Orders) == 0 {
		remedy = "nothing has run here yet: start with `writ run FILE`"
	}
	return reason.New(reason.IDUnknown, fmt.Sprintf("nothing here has an id that begins with %q", id), "", remedy)
}

// Decision reads the policy decision of an attempt; ok is false where none was made.
func (r *Reading) Decision(ctx context.Context, s kernel.State) (record policy.Record, ok bool, err error) {
	digest := s.Decision()
	if !digest.Valid() {
		return policy.Record{}, false, nil
	}
	raw, err := r.Artifacts.Read(ctx, digest, artifact.MaxDocument)
	if err != nil {
		return policy.Record{}, false, err
	}
	record, err = policy.ParseRecord(raw)
	return record, err == nil, err
}
