package kernel

import (
	"fmt"

	"github.com/writ-runtime/writ/go/canonical"
	"github.com/writ-runtime/writ/go/capability"
	"github.com/writ-runtime/writ/go/reason"
	"github.com/writ-runtime/writ/go/workorder"
)

// RaiseMode records that an authenticated person approves a work order as it stands for the
// mode that it asks for, by what an accepted attempt in a lower mode showed. It grants
// nothing: whether the mode is reached, the policies say.
type RaiseMode struct {
	ModeRaised
	// Ingress is the digest of the ingress receipt of the command.
	Ingress canonical.Digest
}

// ModeRaised is the body of work_order.mode_raised.
type ModeRaised struct {
	Mode     capability.Mode `json:"mode"`
	Evidence ModeEvidence    `json:"evidence"`
	// ExpectedVersion is how many events the work order had when the person looked.
	ExpectedVersion uint64 `json:"expected_version"`
	Principal       string `json:"principal"`
	Reason          string `json:"reason"`
}

// ModeEvidence is what an accepted attempt shows: which code ran under which order, in which
// mode, and what it came to.
type ModeEvidence struct {
	Attempt workorder.AttemptID `json:"attempt"`
	Mode    capability.Mode     `json:"mode"`
	Bundle  canonical.Digest    `json:"bundle"`
	Tool    canonical.Digest    `json:"tool"`
	Adapter canonical.Digest    `json:"adapter"`
	Result  canonical.Digest    `json:"result"`
}

// EvidenceOf returns what an attempt shows. It refuses one that was not accepted.
func EvidenceOf(s State) (ModeEvidence, error) {
	if s.Of(AttemptMachine).State != "accepted" {
		return ModeEvidence{}, reason.New(reason.ModeNoEvidence, fmt.Sprintf("the attempt is %s, and only an accepted one shows anything", orNone(string(s.Of(AttemptMachine).State))),
			string(s.Attempt), "name one that succeeded: `writ status` lists them")
	}
	b := s.Bundle.Bundle()
	e := ModeEvidence{Attempt: s.Attempt, Mode: b.Mode, Bundle: s.Bundle.Digest(), Adapter: b.Pins.Adapter.Digest}
	for _, tool := range b.Pins.Tools {
		if tool.Name == b.Execution.Tool {
			e.Tool = tool.Digest
		}
	}
	var err error
	e.Result, err = canonical.DigestOf(s.Result)
	return e, err
}

func (c RaiseMode) decide(d *decision) error {
	if at := d.state.Of(WorkOrderMachine).Version; c.ExpectedVersion != at {
		return reason.New(reason.IngressStale,
			fmt.Sprintf("the work order is at event %d, and the command was decided at event %d", at, c.ExpectedVersion),
			string(d.state.WorkOrder), "look again with `writ show "+string(d.state.WorkOrder)+"`, and decide on what is there now")
	}
	var order workorder.WorkOrder
	if err := canonical.Decode(d.state.Order.Order, &order); err != nil {
		return err
	}
	switch asked := capability.Mode(order.Mode); {
	case c.Mode != asked:
		return reason.New(reason.ModeNotAsked, fmt.Sprintf("the order asks for mode %s and cannot be changed", asked), string(d.state.WorkOrder),
			fmt.Sprintf("submit an order in mode %s, and raise that one", c.Mode))
	case c.Evidence.Mode == asked || !asked.AtLeast(c.Evidence.Mode):
		return reason.New(reason.ModeNoEvidence, fmt.Sprintf("the attempt ran in mode %s, which is not below %s", c.Evidence.Mode, asked), string(c.Evidence.Attempt),
			"name an attempt of the same tool in a lower mode")
	}
	g, err := report("ModeEvidence", c.Evidence)
	if err != nil {
		return err
	}
	return d.of("work_order.mode_raised", c.ModeRaised, g, guard("IngressReceipt", c.Ingress))
}
