package executor

import (
	"fmt"

	"github.com/writ-runtime/writ/go/api/wire"
	"github.com/writ-runtime/writ/go/canonical"
	"github.com/writ-runtime/writ/go/operation"
	"github.com/writ-runtime/writ/go/protocol"
	"github.com/writ-runtime/writ/go/reason"
)

// Witness is what the host itself saw an adapter do.
type Witness interface {
	// Launches returns what was launched under a call, in order.
	Launches(parent operation.Key) []Launch
}

// Launch is one sub-operation that the host performed for an adapter.
type Launch struct {
	Key    operation.Key
	Digest canonical.Digest
	// Record is nil while it runs.
	Record *operation.Record
}

// contradiction compares what a claim lists with what the host saw; nil when they agree.
func contradiction(c protocol.Call, claimed []wire.Effect, seen []Launch) *reason.Refusal {
	if len(claimed) != len(seen) {
		return lied(c.Operation, fmt.Sprintf("the adapter claims %d launches, the host made %d for it", len(claimed), len(seen)))
	}
	for i, e := range claimed {
		if e.Key != seen[i].Key || e.Digest != seen[i].Digest {
			return lied(c.Operation, fmt.Sprintf("the adapter claims the launch %s, the host made %s", e.Key, seen[i].Key))
		}
	}
	return nil
}

// CheckCompletion holds an adapter's completion report against what the host launched under the start and recorded
// of it. It fails with adapter.lied.
func CheckCompletion(start operation.Key, handle string, report protocol.CompletionReport, seen []Launch) error {
	if report.Handle != handle {
		return lied(start, "the adapter reports the completion of another execution")
	}
	own := protocol.CompletionReport{Handle: handle, Launches: []operation.Key{}, Ended: []protocol.LaunchResult{}}
	for _, l := range seen {
		if l.Record == nil {
			return lied(start, "the adapter reports completion while "+string(l.Key)+" runs")
		}
		var ended protocol.LaunchResult
		if l.Record.Outcome.Knowledge != operation.Applied {
			return lied(start, "the adapter reports the completion of "+string(l.Key)+", which was never launched")
		}
		if err := canonical.DecodeCanonical(l.Record.Outcome.Result, &ended); err != nil {
			return fmt.Errorf("result of %s: %w", l.Key, err)
		}
		own.Launches, own.Ended = append(own.Launches, l.Key), append(own.Ended, ended)
	}
	said, err := canonical.DigestOf(report)
	if err != nil {
		return fmt.Errorf("completion report of %s: %w", start, err)
	}
	found, err := canonical.DigestOf(own)
	if err != nil {
		return fmt.Errorf("completion report of %s: %w", start, err)
	}
	if said != found {
		return lied(start, "the adapter's completion report differs from the host's records")
	}
	return nil
}

func lied(key operation.Key, what string) *reason.Refusal {
	return reason.New(reason.AdapterLied, what, string(key), "do not run this adapter again before its vendor has explained it")
}
