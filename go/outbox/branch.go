package outbox

import (
	"context"
	"errors"
	"io/fs"
	"strings"

	"github.com/writ-runtime/writ/go/beneath"
	"github.com/writ-runtime/writ/go/operation"
	"github.com/writ-runtime/writ/go/protocol"
	"github.com/writ-runtime/writ/go/reason"
)

// branch makes a new branch in a repository of the deployment, with one commit on the
// proposal's base. The working tree, the index, HEAD, the configuration and every branch
// that is there stay as they are.
type branch struct {
	box  *Outbox
	path string
	p    Proposal
}

func (b branch) reachable() error {
	if b.box.git == "" {
		return gitMissing(nil)
	}
	place, err := openPlace(b.path)
	if err == nil {
		err = place.Close()
	}
	return err
}

func (b branch) perform(ctx context.Context, m mark) operation.Outcome {
	r, err := openRepository(b.path)
	if err != nil {
		return operation.Refused(operation.NotApplied, err)
	}
	defer r.Close()
	fail := func(err error) operation.Outcome {
		if errors.Is(err, errBranchTaken) {
			err = b.taken()
		}
		return operation.Refused(operation.NotApplied, refuse(err, "a branch cannot be made", b.p.BranchName()))
	}
	now, err := r.branchAt(b.p.BranchName())
	if err != nil {
		return fail(err)
	}
	w, err := b.box.work(r)
	if err != nil {
		return fail(err)
	}
	defer w.close()
	c, err := w.commit(ctx, b.box.store, b.p)
	if err != nil {
		return fail(err)
	}
	switch now {
	case "":
	case c.id:
		return b.durable(r, c)
	default:
		return fail(errBranchTaken)
	}
	if err := b.box.hands.install(ctx, w); err != nil {
		return fail(err)
	}
	if err := w.verify(ctx, b.p, c); err != nil {
		return fail(err)
	}
	known, err := b.box.hands.newBranch(r, b.p.BranchName(), c.id, m)
	switch {
	case err != nil && known == operation.Unknown:
		return operation.Refused(operation.Unknown, refuse(err, "whether a branch was made durable is not known", b.p.BranchName()))
	case err != nil:
		return fail(err)
	}
	if now, err := r.branchAt(b.p.BranchName()); err != nil || now != c.id {
		return operation.Refused(operation.Unknown, reason.New(reason.OutboxOccupied, "the branch was made, and is not any more what was made", b.p.BranchName(),
			"look at it, and say what you found with resolve-ambiguous-effect").Because(err))
	}
	return b.done(c)
}

// resolve looks at the reference. What it finds is compared with the commit that the
// proposal gives, which is made again in a workshop and not in the repository.
func (b branch) resolve(ctx context.Context, m mark) operation.Outcome {
	doubt := func(err error) operation.Outcome {
		return operation.Refused(operation.Unknown, refuse(err, "what became of a branch cannot be found out", b.p.BranchName()))
	}
	r, err := openRepository(b.path)
	if err != nil {
		return doubt(err)
	}
	defer r.Close()
	now, err := r.branchAt(b.p.BranchName())
	switch {
	case errors.Is(err, errBranchTaken):
		return m.absent(b.p.BranchName(), b.taken())
	case err != nil:
		return doubt(err)
	}
	w, err := b.box.work(r)
	if err == nil {
		defer w.close()
	}
	var c commit
	if err == nil {
		c, err = w.commit(ctx, b.box.store, b.p)
	}
	switch {
	case now == "":
		if err == nil {
			b.sweep(r, c)
		}
		return m.absent(b.p.BranchName(), reason.New(reason.OutboxAbsent, "the repository has no branch of the name", b.p.BranchName(), "it may be sent again"))
	case err != nil:
		return doubt(err)
	case now != c.id:
		return doubt(reason.New(reason.OutboxOccupied, "the branch is there, at another commit than was made", b.p.BranchName(),
			"look at it, and say what you found with resolve-ambiguous-effect"))
	}
	return b.durable(r, c)
}

// durable answers that the branch is there, once that would survive a loss of power, and
// removes the lock that an earlier life may have left.
func (b branch) durable(r *repository, c commit) operation.Outcome {
	b.sweep(r, c)
	name := heads + b.p.BranchName()
	for at := strings.LastIndexByte(name, '/'); at > 0; at = strings.LastIndexByte(name[:at], '/') {
		dir, err := beneath.Open(r.dir, name[:at])
		if errors.Is(err, fs.ErrNotExist) {
			continue // git keeps the reference among the packed ones, which it made durable
		}
		if err == nil {
			err = errors.Join(b.box.hands.Do("sync", dir.Sync), dir.Close())
		}
		if err != nil {
			return operation.Refused(operation.Unknown, refuse(err, "a branch cannot be made durable", b.p.BranchName()))
		}
	}
	return b.done(c)
}

func (b branch) sweep(r *repository, c commit) {
	dir, err := r.refFolder(b.p.BranchName())
	if err != nil || dir == nil {
		return
	}
	defer dir.Close()
	b.box.hands.sweepRef(dir, b.p.Purpose, c.id+"\n")
}

func (b branch) done(c commit) operation.Outcome {
	return operation.Done(protocol.BranchResult{Destination: b.p.Destination, Branch: b.p.BranchName(), Commit: c.id, Tree: c.tree})
}

func (b branch) taken() error {
	return reason.New(reason.OutboxOccupied, "something else has the branch's name, or a name that leaves no room for it; it was left alone", b.p.BranchName(),
		"look at it, and move it away if it may go")
}
