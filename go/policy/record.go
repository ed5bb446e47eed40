package policy

import (
	"bytes"
	"context"
	"fmt"

	"github.com/writ-runtime/writ/go/canonical"
	"github.com/writ-runtime/writ/go/capability"
	"github.com/writ-runtime/writ/go/reason"
)

// RecordKind is the kind of a decision record.
const RecordKind = "writ.decision.v1"

// Record is everything about one decision, ready to be stored: the same policies, input and answers of the other
// layers give the same bytes.
type Record struct {
	Kind     string        `json:"kind"`
	Policies []LayerDigest `json:"policies"`
	// Actions is the digest of the registry of actions.
	Actions canonical.Digest `json:"actions"`
	// Input is the digest of the canonical JSON of the policies' input.
	Input     canonical.Digest     `json:"input"`
	Requested []capability.Request `json:"requested"`
	// Answers holds the answers that were given, in the order of the layers.
	Answers   []capability.Answer  `json:"answers"`
	Effective capability.Effective `json:"effective"`
	// Denials is empty exactly when the work may start.
	Denials []capability.Denial `json:"denials"`
}

// Conclude puts the answers of the policies together with the work order's own and with the others (those of the
// support and the broker layer), and records what comes out. A layer that two answers claim counts as failed.
func (e *Engine) Conclude(in Input, d Decision, others ...capability.Answer) Record {
	given := append([]capability.Answer{capability.Asked(in.Requested)}, d.Answers...)
	for _, a := range others {
		given = append(given, a.Narrow(in.Requested))
	}
	answers := map[capability.Layer]capability.Answer{}
	for _, a := range given {
		if _, twice := answers[a.Layer]; twice {
			a = capability.Failure(a.Layer, reason.PolicyMalformedAnswer, "two answers claim to be of this layer", "")
		}
		answers[a.Layer] = a
	}
	r := Record{Kind: RecordKind, Policies: d.Policies, Actions: e.options.Registry.Digest(), Input: d.Input, Requested: in.Requested}
	for _, l := range capability.Layers() {
		if a, ok := answers[l]; ok {
			r.Answers = append(r.Answers, a)
		}
	}
	r.Effective, r.Denials = e.options.Registry.Resolve(in.Requested, in.WorkOrder.Mode, answers)
	return r
}

// Bytes returns the canonical JSON of the record.
func (r Record) Bytes() ([]byte, error) {
	b, err := canonical.Marshal(r)
	if err != nil {
		return nil, fmt.Errorf("decision record: %w", err)
	}
	return b, nil
}

// Refusal returns the first denial as an error, or nil when the work may start.
func (r Record) Refusal() error {
	if len(r.Denials) == 0 {
		return nil
	}
	return r.Denials[0].Refusal()
}

// ParseRecord reads the canonical bytes of a record.
func ParseRecord(b []byte) (Record, error) {
	var r Record
	if err := canonical.DecodeCanonical(b, &r); err != nil {
		return Record{}, fmt.Errorf("decision record: %w", err)
	}
	if r.Kind != RecordKind {
		return Record{}, reason.New(reason.SchemaWrongKind, fmt.Sprintf("the document is of kind %q, not %s", r.Kind, RecordKind), "", "")
	}
	return r, nil
}

// Replay decides the input again and compares the outcome with the bytes of a record; the answers of the layers
// that are no policies are taken from the record. The error has code policy.replay_mismatch when policies, input
// or outcome differ.
func (e *Engine) Replay(ctx context.Context, in Input, recorded []byte) error {
	r, err := ParseRecord(recorded)
	if err != nil {
		return err
	}
	// Not from the memo: a replay that looks at what was remembered proves nothing.
	fresh := Engine{options: e.options, layers: e.layers, digests: e.digests, memo: newMemo(-1)}
	d, err := fresh.Decide(ctx, in)
	if err != nil {
		return err
	}
	var others []capability.Answer
	for _, a := range r.Answers {
		if a.Layer == capability.SupportLayer || a.Layer == capability.BrokerLayer {
			others = append(others, a)
		}
	}
	again, err := fresh.Conclude(in, d, others...).Bytes()
	if err != nil {
		return err
	}
	if !bytes.Equal(again, recorded) {
		return reason.New(reason.PolicyReplayMismatch, "deciding again gives "+string(canonical.Sum(again))+", recorded is "+string(canonical.Sum(recorded)),
			"", "compare the policies and the input with those that the record names")
	}
	return nil
}

// Allowing lists the rules that allow a grant, one for each layer that names one, and
// returns what the first of them says.
func (r Record) Allowing(g capability.Grant) (rules []string, why string) {
	var texts []string
	for _, a := range r.Answers {
		for _, spoken := range a.Reasons {
			allowed := capability.Grant{Action: spoken.Action, Resource: spoken.Resource, Destination: spoken.Destination}
			if spoken.Effect == capability.Allow && allowed.Contains(capability.Grant{Action: g.Action, Resource: g.Resource, Destination: g.Destination}) {
				rules = append(rules, spoken.Rule)
				texts = append(texts, spoken.Text)
				break
			}
		}
	}
	if len(texts) > 0 {
		why = texts[0]
	}
	return rules, why
}
