package kernel

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/writ-runtime/writ/go/attemptbundle"
	"github.com/writ-runtime/writ/go/operation"
	"github.com/writ-runtime/writ/go/protocol"
	"github.com/writ-runtime/writ/go/reason"
)

// purposeMain is the purpose of an operation that an attempt needs exactly once.
const purposeMain = "main"

// Plan is what an attempt needs done next. Exactly one part of it is set.
type Plan struct {
	// Resolve are intents of an earlier life whose outcome must be asked for.
	Resolve []operation.Intent
	// Reconcile says that the provider must be asked what lives under the
	// environment's name.
	Reconcile bool
	// Begin are the operations that may begin together, in the order in which each
	// waits for the one before.
	Begin []operation.Intent
	// Reduce says that the collected result waits for its reduction.
	Reduce bool
	// Wait says what the attempt waits for that its supervisor cannot bring about.
	Wait string
	// Done says that the attempt is closed and nothing of it is left.
	Done bool
}

// Next says what the attempt needs done. It always makes progress or names what it
// waits for.
func (k Kernel) Next(s State) (Plan, error) {
	if open := s.unresolved(); len(open) > 0 {
		return Plan{Resolve: open}, nil
	}
	attempt, env, exec := s.Of(AttemptMachine).State, s.Of(EnvironmentMachine).State, s.Of(ExecutionMachine).State
	switch attempt {
	case "":
		return Plan{Wait: "reservation"}, nil
	case "reserved":
		return Plan{Wait: "activation"}, nil
	case "reconciling":
		return Plan{Reconcile: true}, nil
	case "cancellation_requested":
		for _, o := range s.Operations() {
			if o.Intent.Kind == operation.Cancel {
				// It was tried and did not prove itself: ask what is left.
				return Plan{Reconcile: true}, nil
			}
		}
		return k.begin(s, want{operation.Cancel, purposeMain})
	}
	if exec == "lost" || exec == "unknown" || env == "unknown" {
		return Plan{Reconcile: true}, nil
	}
	if k.terminal(AttemptMachine, s) {
		return k.remove(s)
	}
	switch {
	case env == "requested":
		return k.begin(s, want{operation.Provision, purposeMain}, want{operation.Materialize, purposeMain}, want{operation.Prepare, purposeMain})
	case env == "materialized" && exec == "prepared":
		return k.begin(s, want{operation.Start, purposeMain}, want{operation.Launch, purposeMain})
	case exec == "completion_reported" && env == "active":
		return k.begin(s, want{operation.Freeze, purposeMain}, want{operation.Collect, purposeMain})
	case exec == "completed" && env == "frozen":
		return Plan{Reduce: true}, nil
	}
	return Plan{Wait: fmt.Sprintf("a report: the environment is %s and the execution is %s", orNone(string(env)), orNone(string(exec)))}, nil
}

// unresolved are the open intents that may still be asked about: an answer of unknown
// is asked for again only within the bundle's tries, and not once the effect is known to
// have dissolved with its resource.
func (s State) unresolved() []operation.Intent {
	var open []operation.Intent
	for _, o := range s.operations {
		if o.Intent.Kind.OfOutbox() {
			continue // What leaves is no part of the attempt: see Sendings.
		}
		if Personal(o) {
			continue // It waits for a person, and for nobody else.
		}
		dissolved := o.Record.Outcome.Code == reason.OperationDissolved
		if o.State == "intended" || o.State == "unknown" && !dissolved && int64(o.Late)+1 < s.Bundle.Bundle().Reconciliation.Tries {
			open = append(open, o.Intent)
		}
	}
	slices.SortFunc(open, func(a, b operation.Intent) int { return strings.Compare(string(a.Key), string(b.Key)) })
	return open
}

// remove plans the end of a closed attempt: clean up, reset where that is ordered, destroy,
// done. Destroy waits for what the reset came to. What was to be kept and could not be in as
// many tries as the bundle allows, is let go in as many more: the workspace is not worth an
// environment that stands for ever.
func (k Kernel) remove(s State) (Plan, error) {
	if !k.owes(s) {
		return Plan{Done: true}, nil
	}
	var tries, cleaned, reset int
	for _, o := range s.operations {
		switch o.Intent.Kind {
		case operation.Destroy:
			tries++
		case operation.Cleanup:
			cleaned++
		case operation.Reset:
			reset++
		}
	}
	var wants []want
	if tries == 0 && cleaned == 0 && s.evidence["PrepareReceipt"].Valid() {
		wants = append(wants, want{operation.Cleanup, purposeMain})
	}
	if tries == 0 && reset == 0 && s.resets() {
		return k.begin(s, append(wants, want{operation.Reset, purposeMain})...)
	}
	// A person who has looked gives it as many tries again.
	max := s.Bundle.Bundle().Reconciliation.Tries * int64(1+s.looked())
	if s.Bundle.Bundle().Environment.Retention.Keep {
		max *= 2
	}
	if int64(tries) >= max {
		return Plan{Wait: fmt.Sprintf("a person: %d tries to destroy %s failed", tries, s.Resource)}, nil
	}
	destroy := want{operation.Destroy, purposeMain}
	if tries > 0 {
		destroy.purpose = againPrefix + strconv.Itoa(tries)
	}
	return k.begin(s, append(wants, destroy)...)
}

// resets reports whether the attempt's environment is to be reset where it stands: one that
// failed or was withdrawn is destroyed as it is.
func (s State) resets() bool {
	return s.Bundle.Bundle().Environment.Reset == attemptbundle.ResetBeforeDestroy && s.Of(EnvironmentMachine).State == "frozen"
}

// Closed reports whether the attempt came to its result; its environment may still
// have to be removed.
func (k Kernel) Closed(s State) bool { return k.terminal(AttemptMachine, s) }

func (k Kernel) terminal(machine string, s State) bool {
	at := s.Of(machine)
	m := k.transitions.Machine(machine, at.Machine)
	return m != nil && m.Terminal(at.State)
}

func orNone(s string) string {
	if s == "" {
		return "not there"
	}
	return s
}

// want is an operation that a plan asks for.
type want struct {
	kind    operation.Kind
	purpose string
}

func (k Kernel) begin(s State, wants ...want) (Plan, error) {
	var p Plan
	for _, w := range wants {
		in, err := k.order(s, w)
		if err != nil {
			return Plan{}, err
		}
		p.Begin = append(p.Begin, in)
	}
	return p, nil
}

// ordered returns the intent that the attempt bundle orders under in's kind and
// purpose, for comparison with in.
func (k Kernel) ordered(s State, in operation.Intent) (operation.Intent, error) {
	switch purpose := in.Key.Purpose(); {
	case purpose == purposeMain:
	case in.Kind == operation.Checkpoint && s.orders(purpose):
	case in.Kind == operation.Destroy && strings.HasPrefix(purpose, againPrefix):
	default:
		return operation.Intent{}, reason.New(reason.CapabilityNotGranted,
			fmt.Sprintf("the attempt bundle orders no %s for %q", in.Kind, purpose), string(in.Key),
			"name what is to run in the work order; an adapter cannot add to it")
	}
	return k.order(s, want{in.Key.Kind(), in.Key.Purpose()})
}

// order returns the intent of an operation that the attempt bundle orders.
func (k Kernel) order(s State, w want) (operation.Intent, error) {
	request, parent, err := k.request(s, w)
	if err != nil {
		return operation.Intent{}, err
	}
	return request.Intent(s.Bundle.Bundle().Operations.Namespace, parent, k.classes.Of(w.kind), s.Resource)
}

// Request returns the request that an intent of the attempt was recorded for: what an
// adapter or provider is called with.
func (k Kernel) Request(s State, in operation.Intent) (protocol.Request, error) {
	if in.Kind.OfOutbox() {
		return s.sent(in)
	}
	r, _, err := k.request(s, want{in.Kind, in.Key.Purpose()})
	return r, err
}

// request makes the request of an operation that the attempt bundle orders, and its
// parent: every semantic input of it comes from the bundle, and so does its name.
func (k Kernel) request(s State, w want) (r protocol.Request, parent operation.Key, err error) {
	b := s.Bundle.Bundle()
	adapter, provider := b.Pins.Adapter.Name, b.Environment.Provider.Name
	var (
		actor      = adapter
		parameters any
	)
	retention := s.retention(w)
	switch w.kind {
	case operation.Provision:
		actor, parameters = provider, protocol.ProvisionParameters{Manifest: s.Reserved.Digests.Environment}
	case operation.Materialize:
		inputs, err := report("InputManifest", b.Inputs)
		if err != nil {
			return protocol.Request{}, "", err
		}
		actor, parameters = provider, protocol.MaterializeParameters{Inputs: inputs.Digest}
	case operation.Prepare:
		parameters = protocol.PrepareParameters{Adapter: b.Pins.Adapter.Digest}
	case operation.Start:
		parameters = protocol.StartParameters{Prompt: b.Prompt}
	case operation.Launch:
		if parent, err = operation.NewKey(b.Operations.Namespace, string(s.Attempt), adapter, operation.Start, purposeMain); err != nil {
			return protocol.Request{}, "", err
		}
		l := protocol.LaunchParameters{Arguments: b.Execution.Arguments, Seed: b.Execution.Seed}
		for _, tool := range b.Pins.Tools {
			if tool.Name == b.Execution.Tool {
				l.Tool = tool.Digest
			}
		}
		parameters = l
	case operation.Checkpoint:
		parameters = protocol.CheckpointParameters{PayloadKind: b.Checkpoint.PayloadKind, MaxBytes: b.Checkpoint.MaxBytes}
	case operation.Freeze:
		actor, parameters = provider, protocol.FreezeParameters{Policy: b.Outputs.Policy, Attestation: s.evidence["EnvironmentAttestation"]}
	case operation.Collect:
		parameters = protocol.CollectParameters{Result: b.Outputs.Result, Schema: b.Outputs.Schema}
	case operation.Reset:
		actor, parameters = provider, protocol.ResetParameters{Policy: b.Environment.Reset, Attestation: s.evidence["EnvironmentAttestation"]}
	case operation.Cancel:
		parameters = protocol.CancelParameters{Reason: s.CancelReason}
	case operation.Cleanup:
		parameters = retention
	case operation.Destroy:
		actor, parameters = provider, retention
	default:
		return protocol.Request{}, "", reason.New(reason.EnvironmentUnsupported,
			fmt.Sprintf("%s is registered and not supported by this release", w.kind), string(s.Attempt),
			"leave out what needs it")
	}
	r, err = protocol.NewRequest(w.kind, s.Bundle.Digest(), s.Attempt, actor, w.purpose, parameters)
	return r, parent, err
}
