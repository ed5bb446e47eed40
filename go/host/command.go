package host

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"sync"
	"time"

	"github.com/writ-runtime/writ/go/admission"
	"github.com/writ-runtime/writ/go/ingress"
	"github.com/writ-runtime/writ/go/projection"
	"github.com/writ-runtime/writ/go/reason"
	"github.com/writ-runtime/writ/go/schema"
	"github.com/writ-runtime/writ/go/workorder"
)

// CommandAnswer is what a command came to, with what it asked to see.
type CommandAnswer struct {
	ingress.Answer
	// Index answers the verb status.
	Index *projection.Index `json:"index,omitempty"`
}

// SubmitAnswer is what a submission came to.
type SubmitAnswer struct {
	WorkOrder workorder.ID `json:"work_order"`
	// Replayed says that it had been recorded before.
	Replayed bool `json:"replayed"`
	// Ticks says that whoever answered attempts the order by itself.
	Ticks bool `json:"ticks"`
}

// Command takes one command of a principal that the channel has authenticated.
func (h *Host) Command(ctx context.Context, principal string, d ingress.Delivery) (CommandAnswer, error) {
	answer, err := h.desk.Handle(ctx, principal, d)
	out := CommandAnswer{Answer: answer}
	if err == nil && answer.Verb == ingress.Status && answer.Failure == nil {
		out.Index, err = h.index.Index(ctx)
	}
	return out, err
}

// Wake takes one wake of a principal that the channel has authenticated: the next tick is to
// carry it out.
func (h *Host) Wake(ctx context.Context, principal string, d ingress.Delivery) (CommandAnswer, error) {
	answer, err := h.desk.Wake(ctx, principal, d)
	return CommandAnswer{Answer: answer}, err
}

// look is how often a host looks whether it still holds its state folder.
const look = 5 * time.Second

// Door answers the requests of people to a host that holds the state folder.
type Door struct {
	host  *Host
	local *ingress.Local
	// ticks says that whoever opened the door ticks when it is woken.
	ticks bool
	// woken has room for one wake: more of them cause no more than one tick.
	woken chan string
	// failed has room for the first reason why nothing can be answered any more.
	failed chan error
	closed chan struct{}
	serve  sync.WaitGroup
}

// OpenDoor opens the channel of people on this machine. ticks says that its Woken is heard: a
// door that nobody hears takes no wake, and says of a submission that it waits.
func (h *Host) OpenDoor(ctx context.Context, ticks bool) (*Door, error) {
	local, err := ingress.Listen(h.state)
	if err != nil {
		return nil, err
	}
	d := &Door{host: h, local: local, ticks: ticks, woken: make(chan string, 1), failed: make(chan error, 1), closed: make(chan struct{})}
	d.serve.Go(func() { d.fail(local.Serve(ctx, d.handle)) })
	d.serve.Go(func() { d.watch(ctx) })
	return d, nil
}

// watch finds out when another process has taken the state folder over: that one has put
// its own socket in the place of this one, so that nobody comes here any more.
func (d *Door) watch(ctx context.Context) {
	ticker := time.NewTicker(look)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			// A read that fails for another reason says nothing of who holds the folder.
			if err := d.host.Journal.Held(ctx); reason.Is(err, reason.JournalTakenOver) {
				d.fail(err)
			}
		case <-d.closed:
			return
		}
	}
}

// Failed tells why the host cannot answer any more, if that comes to be: the channel is
// broken, or nothing can be recorded. Who waits for nothing else then ends.
func (d *Door) Failed() <-chan error { return d.failed }

func (d *Door) fail(err error) {
	if err == nil {
		return
	}
	select {
	case d.failed <- err:
	default:
	}
}

// Woken tells of commands and submissions after which there may be something to attempt:
// the id of one of their deliveries.
func (d *Door) Woken() <-chan string { return d.woken }

// Close takes no more requests, and waits for those under way.
func (d *Door) Close() error {
	close(d.closed)
	err := d.local.Close()
	d.serve.Wait()
	return err
}

func (d *Door) wake(delivery string) {
	select {
	case d.woken <- delivery:
	default:
	}
}

func (d *Door) handle(ctx context.Context, principal string, r ingress.Request) (any, error) {
	answer, err := d.answer(ctx, principal, r)
	if err != nil {
		d.fail(d.host.Journal.Health())
	}
	return answer, err
}

func (d *Door) answer(ctx context.Context, principal string, r ingress.Request) (any, error) {
	switch r.Verb {
	case ingress.Command:
		delivery := ingress.Delivery{ID: r.ID, Channel: ingress.LocalChannel, Verb: r.Verb, Content: []byte(r.Content)}
		if in, err := ingress.Parse(r.Content); err == nil && in.Verb == ingress.Wake && d.ticks {
			answer, err := d.host.Wake(ctx, principal, delivery)
			if err == nil && answer.Failure == nil && !answer.Replayed {
				d.wake(r.ID)
			}
			return answer, err
		} else if err == nil && in.Verb == ingress.Wake {
			return nil, reason.New(reason.JournalLocked, "the state folder is held by a process that carries out one work order and no other", d.host.state,
				"wake it again once that has ended")
		}
		answer, err := d.host.Command(ctx, principal, delivery)
		if err == nil && answer.Failure == nil && answer.Verb != ingress.Status && !answer.Replayed {
			d.wake(r.ID)
		}
		return answer, err
	case ingress.Submit:
		registry, err := schema.Open()
		if err != nil {
			return nil, err
		}
		doc, err := registry.Load(r.Name, []byte(r.Content), workorder.Kind)
		if err != nil {
			return nil, err
		}
		answer, err := d.host.Submit(ctx, principal, r.ID, doc, r.Origin)
		if answer.Ticks = d.ticks; err == nil {
			d.wake(r.ID)
		}
		return answer, err
	}
	return nil, reason.New(reason.IngressMalformed, fmt.Sprintf("a running host takes no %q", r.Verb), ingress.LocalChannel, "use the writ of the same release")
}

// Submit records a work order, once a delivery. Relative paths of the document are taken from
// origin, an absolute folder.
func (h *Host) Submit(ctx context.Context, principal, id string, doc *schema.Document, origin string) (SubmitAnswer, error) {
	if !filepath.IsAbs(origin) {
		return SubmitAnswer{}, reason.New(reason.IngressMalformed, "a submission does not say which folder its paths are relative to", id, "name the folder by an absolute path")
	}
	// What is damaged takes no order: whoever submits it must not learn later that it went with the damage.
	if _, err := h.index.Index(ctx); err != nil {
		return SubmitAnswer{}, err
	}
	delivery := ingress.Delivery{ID: id, Channel: ingress.LocalChannel, Verb: ingress.Submit, Content: doc.Canonical}
	return h.submit(ctx, principal, delivery, func(accepted ingress.Accepted, around ingress.Around) error {
		_, err := h.Admission.Submit(ctx, doc, origin, accepted, around)
		return err
	})
}

// Admission is what became of a work order that is to be carried out at once.
type Admission struct {
	SubmitAnswer
	// Admitted may be activated; nil for a delivery that had been recorded before.
	Admitted *admission.Admitted
	// Accepted is the delivery that it is recorded with.
	Accepted ingress.Accepted
}

// Admit records a work order, once a delivery, and prepares an attempt at it. What policy
// denies is recorded, and comes back as a *admission.DeniedError.
func (h *Host) Admit(ctx context.Context, principal, id string, doc *schema.Document, origin string) (out Admission, err error) {
	delivery := ingress.Delivery{ID: id, Channel: ingress.LocalChannel, Verb: ingress.Run, Content: doc.Canonical}
	out.SubmitAnswer, err = h.submit(ctx, principal, delivery, func(accepted ingress.Accepted, around ingress.Around) (err error) {
		out.Accepted = accepted
		out.Admitted, err = h.Admission.Admit(ctx, doc, origin, accepted, around)
		return err
	})
	return out, err
}

func (h *Host) submit(ctx context.Context, principal string, d ingress.Delivery, record func(ingress.Accepted, ingress.Around) error) (SubmitAnswer, error) {
	answer, err := h.desk.Submit(ctx, principal, d, record)
	if err == nil {
		err = answer.Refusal()
	}
	if err != nil {
		return SubmitAnswer{}, err
	}
	return SubmitAnswer{WorkOrder: workorder.ID(answer.Became.Subject.ID()), Replayed: answer.Replayed}, nil
}

// Ask sends a request to the host that holds a state folder, and decodes its answer. It
// returns false where no host holds it.
func Ask[A any](ctx context.Context, state string, r ingress.Request) (answer A, served bool, err error) {
	var raw json.RawMessage
	if served, err = ingress.Send(ctx, state, r, &raw); err != nil || !served {
		return answer, served, err
	}
	err = json.Unmarshal(raw, &answer)
	return answer, true, err
}
