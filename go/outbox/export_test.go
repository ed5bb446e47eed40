package outbox

import (
	"context"

	"github.com/writ-runtime/writ/go/operation"
	"github.com/writ-runtime/writ/go/protocol"
)

// PerformAs performs under a call and an intent, as a permit would carry them.
func (s Sending) PerformAs(ctx context.Context, c protocol.Call, in operation.Intent) operation.Outcome {
	return s.perform(ctx, c, in)
}

// Mark is what Ready does where the destination can be reached.
func (s Sending) Mark() error { return s.mark.set() }

// WithSteps has at called before and after every step that changes something.
func (b *Outbox) WithSteps(at func(step string) error) *Outbox {
	c := *b
	c.hands.At = at
	return &c
}

// WithSteps has at called before and after every step that changes something.
func (s *Shadow) WithSteps(at func(step string) error) *Shadow {
	c := *s
	c.hands.At = at
	return &c
}
