package main

import (
	"context"
	"encoding/json"
	"unicode/utf8"

	"github.com/writ-runtime/writ/go/canonical"
	"github.com/writ-runtime/writ/go/host"
	"github.com/writ-runtime/writ/go/kernel"
	"github.com/writ-runtime/writ/go/lifecycle"
	"github.com/writ-runtime/writ/go/operation"
	"github.com/writ-runtime/writ/go/projection"
	"github.com/writ-runtime/writ/go/workorder"
)

// decided is what a person decided, as it was recorded.
type decided struct {
	Turn        uint64           `json:"turn"`
	UnixMilli   int64            `json:"unix_ms"`
	Family      lifecycle.Family `json:"family"`
	Disposition string           `json:"disposition,omitempty"`
	Operation   operation.Key    `json:"operation,omitempty"`
	Principal   string           `json:"principal"`
	Reason      string           `json:"reason"`
	Evidence    canonical.Digest `json:"evidence,omitempty"`
	// Seen is the sentence whose digest Evidence is, empty where that was a digest.
	Seen string `json:"seen,omitempty"`
}

// decisions returns what people have decided among events: each body that names a principal and a
// reason, once for each turn.
func decisions(ctx context.Context, r *host.Reading, events []shownEvent) ([]decided, error) {
	all := []decided{}
	for _, e := range events {
		if len(e.body) == 0 || e.Family == "work_order.mode_raised" {
			continue // An approval of a mode is shown as one.
		}
		// Bodies are of many kinds; what is a person's decision has these members.
		var body struct {
			Operation   operation.Key   `json:"operation"`
			Disposition string          `json:"disposition"`
			Evidence    json.RawMessage `json:"evidence"`
			Principal   string          `json:"principal"`
			Reason      string          `json:"reason"`
		}
		if json.Unmarshal(e.body, &body) != nil || body.Principal == "" || body.Reason == "" {
			continue
		}
		d := decided{
			Turn: e.Sequence, UnixMilli: e.UnixMilli, Family: e.Family, Disposition: body.Disposition, Operation: body.Operation,
			Principal: body.Principal, Reason: body.Reason,
		}
		if n := len(all); n > 0 && all[n-1].Turn == d.Turn && all[n-1].Operation == d.Operation && all[n-1].Disposition == d.Disposition {
			continue // One decision moves several subjects.
		}
		if json.Unmarshal(body.Evidence, &d.Evidence) == nil && d.Evidence.Valid() {
			if raw, err := r.Journal.Blob(ctx, d.Evidence); err == nil && utf8.Valid(raw) {
				d.Seen = string(raw)
			}
		}
		all = append(all, d)
	}
	return all, nil
}

// decidedLines says what people have decided, a few lines for each.
func decidedLines(all []decided, s style) []string {
	var lines []string
	for _, d := range all {
		what := d.Disposition
		if what == "" {
			what = string(d.Family)
		}
		line := what + " by " + plain(d.Principal) + ", " + moment(d.UnixMilli) + " UTC"
		if d.Operation != "" {
			line += ", of " + string(d.Operation)
		}
		lines = append(lines, line, plain(d.Reason))
		switch {
		case d.Seen != "":
			lines = append(lines, s.faint("evidence: "+plain(d.Seen)))
		case d.Evidence != "":
			lines = append(lines, s.faint("evidence: "+string(d.Evidence)))
		}
	}
	return lines
}

// answered is the result of an attempt with the remedy that holds now: not what a person has done already, and nothing
// that turns which were left out may belie.
func answered(a projection.Attempt, all []decided) workorder.Result {
	r := *a.Result
	if a.Doubted {
		r.Remedy = "turns were left out when the journal was recovered: something of it may have left all the same. " +
			"Look at the destinations, and at the file that `writ recover` kept, before you resume the work order"
	}
	for _, d := range all {
		switch d.Disposition {
		case kernel.ConfirmedApplied, kernel.ConfirmedAbsent, kernel.AbandonedUnknown:
			r.Remedy = ""
		}
	}
	return r
}
