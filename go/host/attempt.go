package host

import (
	"context"
	"errors"
	"fmt"

	"github.com/writ-runtime/writ/go/admission"
	"github.com/writ-runtime/writ/go/dispatcher"
	"github.com/writ-runtime/writ/go/environment"
	"github.com/writ-runtime/writ/go/ingress"
	"github.com/writ-runtime/writ/go/journal"
	"github.com/writ-runtime/writ/go/kernel"
	"github.com/writ-runtime/writ/go/ledger"
	"github.com/writ-runtime/writ/go/reason"
	"github.com/writ-runtime/writ/go/schema"
	"github.com/writ-runtime/writ/go/supervisor"
	"github.com/writ-runtime/writ/go/workorder"
)

// Watch is told of an attempt while it is carried out; its zero value looks away.
type Watch struct {
	// Begin is told of each attempt that a tick begins.
	Begin func(*admission.Admitted)
	Step  func(supervisor.Step)
	// Sent is told what became of each proposal of an accepted result.
	Sent func(dispatcher.Sent)
	// Log is told what the adapter says, which is no record.
	Log func(level, message string)
}

// CarryOut supervises an admitted attempt to its end. An activation that is refused
// closes the attempt.
func (h *Host) CarryOut(ctx context.Context, a *admission.Admitted, accepted ingress.Accepted, w Watch) (kernel.State, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer h.begin(a.State.Attempt, running{ctx, cancel})()
	fence := a.State.Fence()
	env, err := a.Provider.Open(environment.Order{Bundle: a.Bundle, Fence: fence, Resource: fence.ResourceName()})
	if err != nil {
		return kernel.State{}, err
	}
	attempt := supervisor.Attempt{
		Bundle: a.Bundle, First: []kernel.Command{a.Activate}, Blobs: a.Blobs,
		Ledger: h.Ledger, Environment: env, Provider: a.Provider, Artifacts: h.Artifacts, Inputs: a.Sources,
		Executor: h.adapter(context.WithoutCancel(ctx), a.Bundle, fence), Schema: a.Schema, Validate: schema.ValidateResult,
		Actor: accepted.Receipt.Principal, Cause: accepted.Receipt.ID, Observe: w.Step, Log: w.Log,
	}
	d := h.dispatcher()
	state, err := d.Supervise(ctx, a.State.Attempt, accepted, func() (kernel.State, error) { return attempt.Run(ctx, a.State) })
	var doubt *ledger.InDoubtError
	if err != nil && !errors.As(err, &doubt) && state.Bundle == nil {
		return d.Unactivated(ctx, state.Attempt, accepted, err)
	}
	if err != nil {
		return state, fmt.Errorf("carry out %s: %w", a.State.Attempt, err)
	}
	if len(state.Sendings()) == 0 {
		return state, nil
	}
	// A request to stop is one to stop the work. What was accepted leaves all the same: a
	// person who does not want it withdraws it.
	state, sent, err := d.Send(context.WithoutCancel(ctx), state.Attempt, accepted)
	w.tell(sent)
	return state, err
}

func (w Watch) tell(sent []dispatcher.Sent) {
	for _, s := range sent {
		if w.Sent != nil {
			w.Sent(s)
		}
	}
}

// running is an attempt that is under way in this process.
type running struct {
	ctx    context.Context
	cancel context.CancelCauseFunc
}

// begin makes an attempt known to commands until the returned function is called.
func (h *Host) begin(id workorder.AttemptID, r running) (end func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.running[id] = r
	return func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		delete(h.running, id)
		if asked, ok := context.Cause(r.ctx).(*supervisor.Asked); ok {
			asked.Answer(supervisor.TooLate(id)) // Unless it was answered.
		}
	}
}

// ask hands commands over to the supervisor of an attempt that is under way here, and waits
// until they are recorded, or cannot be.
func (h *Host) ask(_ context.Context, id workorder.AttemptID, commands []kernel.Command, blobs []journal.Blob) (bool, error) {
	asked := supervisor.Ask(commands, blobs)
	h.mu.Lock()
	r, ok := h.running[id]
	if ok {
		r.cancel(asked)
	}
	h.mu.Unlock()
	switch {
	case !ok:
		return false, nil
	case errors.Is(context.Cause(r.ctx), errRevoked):
		return true, reason.New(reason.KernelWrongState, "the lease of the attempt ran out, and it is being closed", string(id), "see how it ends with `writ show`")
	case errors.Is(context.Cause(r.ctx), supervisor.ErrStopped):
		return true, reason.New(reason.KernelWrongState, "the host is being stopped, and closes the attempt", string(id), "say it again to the next host; see where the attempt stands with `writ show`")
	case context.Cause(r.ctx) != error(asked):
		return true, reason.New(reason.KernelWrongState, "the attempt is being cancelled already", string(id), "see how it ends with `writ show`")
	}
	<-asked.Done()
	return true, asked.Err()
}

// Stopping returns a context that ends with ctx, and has the attempts that are carried out under it
// end as lost, and not as cancelled.
func Stopping(ctx context.Context) (context.Context, func()) {
	inner, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() { cancel(supervisor.ErrStopped) })
	return inner, func() { stop(); cancel(nil) }
}

// errRevoked ends the context of an attempt whose lease ran out.
var errRevoked = errors.New(supervisor.Silent)

// revoke ends what this process still does for an attempt whose lease ran out.
func (h *Host) revoke(id workorder.AttemptID) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if r, ok := h.running[id]; ok {
		r.cancel(errRevoked)
	}
}

// Reconcile closes what an earlier life left open, and sends what it left unsent.
func (h *Host) Reconcile(ctx context.Context, w Watch) ([]dispatcher.Closed, error) {
	accepted, err := h.Accept(ingress.Reconcile, nil)
	if err != nil {
		return nil, err
	}
	closed, sent, err := h.dispatcher().Reconcile(ctx, accepted)
	w.tell(sent)
	return closed, err
}

// Drain sends what was accepted and not sent yet, and asks about what is in doubt.
func (h *Host) Drain(ctx context.Context, accepted ingress.Accepted, w Watch) error {
	sent, err := h.dispatcher().Drain(ctx, accepted)
	w.tell(sent)
	return err
}

// Tick attempts every work order that may be attempted now.
func (h *Host) Tick(ctx context.Context, accepted ingress.Accepted, w Watch) ([]dispatcher.Step, error) {
	return h.dispatcher().Tick(ctx, accepted, h.carry(w))
}

// ExpireRetentions removes what was kept of environments and whose time is over.
func (h *Host) ExpireRetentions(ctx context.Context, accepted ingress.Accepted) ([]dispatcher.Expired, error) {
	return h.dispatcher().ExpireRetentions(ctx, accepted)
}

// Attempt makes the next attempt at one work order.
func (h *Host) Attempt(ctx context.Context, id workorder.ID, accepted ingress.Accepted, w Watch) (dispatcher.Step, error) {
	return h.dispatcher().Attempt(ctx, id, accepted, h.carry(w))
}

func (h *Host) carry(w Watch) dispatcher.Carry {
	return func(ctx context.Context, a *admission.Admitted, accepted ingress.Accepted) (kernel.State, error) {
		if w.Begin != nil {
			w.Begin(a)
		}
		return h.CarryOut(ctx, a, accepted, w)
	}
}

func (h *Host) dispatcher() *dispatcher.Dispatcher {
	return &dispatcher.Dispatcher{
		Ledger: h.Ledger, Index: h.index, Providers: h.providers, Admission: h.Admission, Desk: h.desk, Shadow: h.shadow, Revoked: h.revoke,
	}
}
