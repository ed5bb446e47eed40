package ingress

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/writ-runtime/writ/go/canonical"
	"github.com/writ-runtime/writ/go/journal"
	"github.com/writ-runtime/writ/go/kernel"
	"github.com/writ-runtime/writ/go/ledger"
	"github.com/writ-runtime/writ/go/lifecycle"
	"github.com/writ-runtime/writ/go/reason"
	"github.com/writ-runtime/writ/go/workorder"
)

// Desk takes commands and submissions: it records each delivery before it reads it, decides on it, and
// applies it in one transaction with what it leads to.
type Desk struct {
	Gate    Gate
	Ledger  *ledger.Ledger
	Journal journal.Reader
	// Running hands a request over to the supervisor of an attempt that is under way in
	// this process. It returns false if there is none, and else once the supervisor has
	// recorded the commands, or could not.
	Running func(ctx context.Context, attempt workorder.AttemptID, commands []kernel.Command, blobs []journal.Blob) (bool, error)

	mu sync.Mutex
	// hearing are the deliveries that are being heard; a channel is closed when its is over.
	hearing map[string]chan struct{}
}

// Answer is what a delivery came to.
type Answer struct {
	Delivery string `json:"delivery"`
	// State is applied, rejected, conflict or quarantined.
	State lifecycle.State `json:"state"`
	// Replayed says that it had been decided before.
	Replayed bool   `json:"replayed"`
	Verb     string `json:"verb,omitempty"`
	// Became names the event that an applied command became.
	Became *kernel.CommandOutcome `json:"became"`
	// Failure says why a command was not applied.
	Failure *kernel.Failure `json:"failure"`
}

// Refusal is why the command was not applied, nil for one that was.
func (a Answer) Refusal() error {
	if a.Failure == nil {
		return nil
	}
	return reason.New(a.Failure.Code, a.Failure.Detail, a.Delivery, a.Failure.Remedy)
}

// Handle takes one delivery from a principal that the channel has authenticated. Exact
// redelivery answers what the first one came to. The error says that the delivery could
// not be recorded, or may not be.
func (k *Desk) Handle(ctx context.Context, principal string, d Delivery) (Answer, error) {
	c, over, err := k.receive(ctx, principal, d)
	if err != nil {
		return Answer{}, err
	}
	defer over()
	if c.answer.Failure != nil || c.answer.Replayed {
		return c.answer, nil
	}
	return c.decide(context.WithoutCancel(ctx))
}

// Wake takes one wake, and records that it came; the tick that follows carries it out, and
// Resume then says so. Whoever sends it again before that causes no more than that tick.
func (k *Desk) Wake(ctx context.Context, principal string, d Delivery) (Answer, error) {
	c, over, err := k.receive(ctx, principal, d)
	if err != nil {
		return Answer{}, err
	}
	defer over()
	c.answer.Verb = Wake
	return c.answer, nil
}

// receive makes a delivery durable before anything of it is read, and quarantines one whose
// bytes have changed. The answer is that of one that was decided before.
func (k *Desk) receive(ctx context.Context, principal string, d Delivery) (c *hearing, over func(), err error) {
	accepted, err := k.Gate.Accept(principal, d)
	if err != nil {
		return nil, nil, err
	}
	if len(d.Content) > MaxContent {
		return nil, nil, reason.New(reason.IngressTooLarge, fmt.Sprintf("a command has at most %d bytes, this one has %d", MaxContent, len(d.Content)), d.ID, "say it in fewer")
	}
	if over, err = k.hear(ctx, d.ID); err != nil {
		return nil, nil, err
	}
	defer func() {
		if err != nil {
			over()
		}
	}()
	ctx = context.WithoutCancel(ctx)
	c = &hearing{desk: k, accepted: accepted, content: d.Content}
	if err := c.load(ctx); err != nil {
		return nil, nil, err
	}
	if c.at.Version == 0 {
		return c, over, c.receive(ctx)
	}
	if c.receipt != accepted.Digest {
		c.answer, err = c.quarantine(ctx)
		return c, over, err
	}
	c.answer.Replayed = c.at.State != "received" && c.at.State != "decided"
	return c, over, nil
}

// hear waits until nobody else hears a delivery of the id, and keeps others waiting until the
// returned function is called: what the first comes to is what a repeat is answered.
func (k *Desk) hear(ctx context.Context, id string) (over func(), err error) {
	for {
		k.mu.Lock()
		other, busy := k.hearing[id]
		if !busy {
			mine := make(chan struct{})
			if k.hearing == nil {
				k.hearing = map[string]chan struct{}{}
			}
			k.hearing[id] = mine
			k.mu.Unlock()
			return func() {
				k.mu.Lock()
				defer k.mu.Unlock()
				delete(k.hearing, id)
				close(mine)
			}, nil
		}
		k.mu.Unlock()
		select {
		case <-other:
		case <-ctx.Done():
			return nil, reason.New(reason.IngressUnanswered, "the same delivery is being heard, and came to nothing yet", id, "send it again under the same id").Because(ctx.Err())
		}
	}
}

// Resume decides on what was received and not decided, as if it came again: whatever it
// expects is checked now. Wakes are left alone unless a tick has carried them out.
func (k *Desk) Resume(ctx context.Context, deliveries []string, ticked bool) ([]Answer, error) {
	var answers []Answer
	for _, id := range deliveries {
		d, principal, err := k.received(ctx, id)
		if err != nil {
			return answers, fmt.Errorf("resume %s: %w", id, err)
		}
		if in, err := Parse(string(d.Content)); err == nil && (in.Verb == Wake) != ticked {
			continue
		}
		answer, err := k.Handle(ctx, principal, d)
		var doubt *ledger.InDoubtError
		if _, refused := reason.As(err); err != nil && (!refused || errors.As(err, &doubt) || reason.Is(err, reason.JournalHalted)) {
			return answers, fmt.Errorf("resume %s: %w", id, err)
		}
		if err != nil {
			continue // One that may not be heard any more, as of another owner, keeps nobody else.
		}
		answers = append(answers, answer)
	}
	return answers, nil
}

// received reads a delivery back from what was recorded of it.
func (k *Desk) received(ctx context.Context, id string) (Delivery, string, error) {
	events, err := k.Journal.Events(ctx, lifecycle.Of(kernel.CommandMachine, id))
	if err != nil {
		return Delivery{}, "", err
	}
	if len(events) == 0 || len(events[0].Guards) != 1 {
		return Delivery{}, "", reason.New(reason.IDUnknown, "no delivery has this id", id, "run `writ verify`: an index names it")
	}
	raw, err := k.Journal.Blob(ctx, events[0].Guards[0].Digest)
	if err != nil {
		return Delivery{}, "", err
	}
	var r Receipt
	if err := canonical.Decode(raw, &r); err != nil {
		return Delivery{}, "", err
	}
	content, err := k.Journal.Blob(ctx, r.Content)
	return Delivery{ID: r.ID, Channel: r.Channel, Verb: r.Verb, Content: content}, r.Principal, err
}
