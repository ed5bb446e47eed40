package ledger

import (
	"fmt"

	"github.com/writ-runtime/writ/go/canonical"
	"github.com/writ-runtime/writ/go/kernel"
	"github.com/writ-runtime/writ/go/operation"
	"github.com/writ-runtime/writ/go/protocol"
	"github.com/writ-runtime/writ/go/workorder"
)

// settle makes the host's receipt of an outcome.
func settle(in operation.Intent, fence workorder.Fence, bundle canonical.Digest, out operation.Outcome) (kernel.Settle, error) {
	receipt := protocol.Receipt{
		Kind: protocol.ReceiptKind, Name: protocol.ReceiptName(in.Kind, out), Operation: in.Key, Parent: in.Parent, Digest: in.Digest,
		Class: in.Class, Bundle: bundle, Attempt: fence.Attempt, Generation: fence.Generation, Resource: in.Resource,
		Knowledge: out.Knowledge, Claim: out.Claim, Code: out.Code,
	}
	if len(out.Result) > 0 {
		receipt.Result = canonical.Sum(out.Result)
	}
	raw, err := canonical.Marshal(receipt)
	if err != nil {
		return kernel.Settle{}, fmt.Errorf("receipt of %s: %w", in.Key, err)
	}
	return kernel.Settle{Key: in.Key, Outcome: out, Receipt: raw, Generation: fence.Generation}, nil
}

// CheckReceipt holds a receipt against the intent, result and bundle that it is for.
func CheckReceipt(s kernel.State, o kernel.Operation) error {
	var r protocol.Receipt
	if err := canonical.Decode(o.Record.Receipt, &r); err != nil {
		return err
	}
	in, out := o.Intent, o.Record.Outcome
	var result canonical.Digest
	if len(out.Result) > 0 {
		result = canonical.Sum(out.Result)
	}
	for _, part := range []struct {
		name string
		same bool
	}{
		{"operation key", r.Operation == in.Key}, {"collision digest", r.Digest == in.Digest}, {"parent", r.Parent == in.Parent},
		{"effect class", r.Class == in.Class}, {"resource", r.Resource == in.Resource}, {"knowledge", r.Knowledge == out.Knowledge},
		{"result", r.Result == result}, {"claim", r.Claim == out.Claim}, {"reason", r.Code == out.Code},
		{"bundle", r.Bundle == s.Bundle.Digest()}, {"attempt", r.Attempt == s.Attempt}, {"name", r.Name == protocol.ReceiptName(in.Kind, out)},
	} {
		if !part.same {
			return fmt.Errorf("the receipt names another %s than was recorded", part.name)
		}
	}
	return nil
}
