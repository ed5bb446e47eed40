package operation

import (
	"context"
	"errors"

	"github.com/writ-runtime/writ/go/canonical"
	"github.com/writ-runtime/writ/go/reason"
)

// Outcome is what is known after an effect was attempted or asked about.
type Outcome struct {
	Knowledge Knowledge `json:"knowledge"`
	// Result is the domain result in canonical JSON; its identity is its digest.
	Result canonical.Raw `json:"result,omitempty"`
	// Claim is the digest of what an adapter said about its own effect. It is kept
	// beside the host's facts, never instead of them.
	Claim canonical.Digest `json:"claim,omitempty"`
	// Code says why, for anything but a plain success.
	Code reason.Code `json:"code,omitempty"`
	// Detail is one sentence for a person; it carries no secret and no authority.
	Detail string `json:"detail,omitempty"`
	// Remedy is one sentence on how to mend it.
	Remedy string `json:"remedy,omitempty"`
}

// Done is the outcome of an effect that took place, with its domain result.
func Done(result any) Outcome {
	raw, err := canonical.Marshal(result)
	if err != nil {
		return Refused(Unknown, err)
	}
	return Outcome{Knowledge: Applied, Result: raw}
}

// Refused is the outcome of an effect that did not take place, or of which that is
// not known, with the reason that err carries.
func Refused(k Knowledge, err error) Outcome { return Outcome{Knowledge: k}.Because(err) }

// Because returns the outcome with the reason that err carries.
func (o Outcome) Because(err error) Outcome {
	r, ok := reason.As(err)
	if !ok && errors.Is(err, context.Canceled) {
		o.Code, o.Detail = reason.AttemptCancelled, "it was ended because a cancellation was asked for"
		return o
	}
	if !ok {
		o.Code, o.Detail = reason.InternalBug, err.Error()
		return o
	}
	o.Code, o.Detail, o.Remedy = r.Code, r.What, r.Remedy
	if r.Where != "" {
		o.Detail += " (" + r.Where + ")"
	}
	return o
}
