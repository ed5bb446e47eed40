package ledger

import (
	"bytes"

	"github.com/writ-runtime/writ/go/canonical"
	"github.com/writ-runtime/writ/go/kernel"
	writ "github.com/writ-runtime/writ/go/ledger"
	"github.com/writ-runtime/writ/go/lifecycle"
	"github.com/writ-runtime/writ/go/operation"
	"github.com/writ-runtime/writ/go/protocol"
	"github.com/writ-runtime/writ/go/workorder"
	"github.com/writ-runtime/writ/testing/fixture"
)

func operationSubject(key operation.Key) lifecycle.Subject {
	return lifecycle.Of(kernel.OperationMachine, string(key))
}

// judge holds the journal, read anew, against what took place.
func (r *run) judge() {
	s, err := writ.Load(r.t.Context(), r.Store, r.Ledger.Kernel(), fixture.Attempt)
	if err != nil {
		r.t.Fatal(err)
	}
	if s.Result == nil || s.Result.Conclusion != workorder.Succeeded {
		r.find("the attempt did not succeed: %+v", s.Result)
	}
	kinds := map[operation.Kind]int{}
	var start, launch operation.Intent
	for _, o := range s.Operations() {
		in := o.Intent
		kinds[in.Kind]++
		switch in.Kind {
		case operation.Start:
			start = in
		case operation.Launch:
			launch = in
		}
		r.recorded(s, o)
		r.replayed(s, o)
	}
	for _, kind := range []operation.Kind{operation.Prepare, operation.Start, operation.Launch, operation.Collect, operation.Cleanup} {
		if kinds[kind] != 1 {
			r.find("%d operations of kind %s are recorded, not one", kinds[kind], kind)
		}
	}
	if launch.Parent != start.Key {
		r.find("the launch is recorded under %q, not under its start", launch.Parent)
	}
	r.mu.Lock()
	performed, probed := r.performed, r.probed
	r.mu.Unlock()
	if len(performed) != 1 || performed[launch.Key] != 1 {
		r.find("performed were %v, recorded was one launch", performed)
	}
	if !probed {
		r.find("it never asked for the launch that is ordered")
	}
}

// recorded holds one operation's intent and receipt against what they have to bind.
func (r *run) recorded(s kernel.State, o kernel.Operation) {
	in := o.Intent
	if err := in.Check(); err != nil {
		r.find("the intent of %s: %v", in.Key, err)
	}
	if in.Resource != s.Fence().ResourceName() || in.Key.Scope() != string(s.Attempt) {
		r.find("%s is bound to another attempt or fence: %s", in.Key, in.Resource)
	}
	if o.State != "applied" {
		r.find("%s is %s: %s", in.Key, o.State, o.Record.Outcome.Detail)
	}
	if err := writ.CheckReceipt(s, o); err != nil {
		r.find("the receipt of %s: %v", in.Key, err)
	}
	var receipt protocol.Receipt
	if err := canonical.Decode(o.Record.Receipt, &receipt); err != nil || receipt.Generation != s.Generation {
		r.find("the receipt of %s is of fence %d: %v", in.Key, receipt.Generation, err)
	}
	// The request that the collision digest is over is what the bundle orders.
	q, err := r.Ledger.Kernel().Request(s, in)
	if err != nil {
		r.find("the request of %s: %v", in.Key, err)
	} else if digest, err := canonical.DigestOf(q); err != nil || digest != in.Digest {
		r.find("the digest of %s is not that of its request", in.Key)
	}
	// Intent first: in a turn before that of its answer.
	events, err := r.Store.Events(r.t.Context(), operationSubject(in.Key))
	if err != nil {
		r.t.Fatal(err)
	}
	if len(events) < 2 || events[0].Family != "operation.intended" || events[0].Sequence >= events[1].Sequence {
		r.find("%s was not intended before it was answered", in.Key)
	}
}

// replayed asks for one operation again.
func (r *run) replayed(s kernel.State, o kernel.Operation) {
	turn := writ.Turn{Fence: s.Fence(), Commands: []kernel.Command{kernel.Begin{Intent: o.Intent}}, Actor: "uid:0"}
	opened, err := r.Ledger.Commit(r.t.Context(), turn)
	if err != nil || len(opened.Permits) != 0 || len(opened.Replayed) != 1 || !bytes.Equal(opened.Replayed[0].Receipt, o.Record.Receipt) {
		r.find("%s asked for again is not answered from the journal: %v", o.Intent.Key, err)
	}
	other := o.Intent
	other.Digest = fixture.Digest("another request")
	turn.Commands = []kernel.Command{kernel.Begin{Intent: other}}
	if _, err := r.Ledger.Commit(r.t.Context(), turn); err == nil {
		r.find("%s is begun with another digest", o.Intent.Key)
	}
}
