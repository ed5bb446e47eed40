package main

import (
	"context"
	"fmt"

	"github.com/writ-runtime/writ/go/attemptbundle"
	"github.com/writ-runtime/writ/go/canonical"
	"github.com/writ-runtime/writ/go/host"
	"github.com/writ-runtime/writ/go/journal"
	"github.com/writ-runtime/writ/go/kernel"
	"github.com/writ-runtime/writ/go/lifecycle"
	"github.com/writ-runtime/writ/go/operation"
	"github.com/writ-runtime/writ/go/reason"
	"github.com/writ-runtime/writ/go/workorder"
)

// shownCheckpoint is one checkpoint that was proposed, and how the reducer judged it.
type shownCheckpoint struct {
	Operation   string           `json:"operation"`
	PayloadKind string           `json:"payload_kind"`
	Payload     canonical.Digest `json:"payload"`
	Bytes       int64            `json:"payload_bytes"`
	// Position is set for one that was validated, Code and Detail for one that was refused.
	Position int64       `json:"position,omitempty"`
	Code     reason.Code `json:"code,omitempty"`
	Detail   string      `json:"detail,omitempty"`
}

// checkpoints returns every checkpoint that was proposed in an attempt, in order.
func checkpoints(ctx context.Context, r *host.Reading, s kernel.State) ([]shownCheckpoint, error) {
	shown := []shownCheckpoint{}
	events, err := r.Journal.Events(ctx, lifecycle.Of(kernel.ExecutionMachine, string(s.Attempt)))
	if err != nil {
		return nil, err
	}
	for _, e := range events {
		if err := judged(&shown, e); err != nil {
			return nil, fmt.Errorf("%s of %s: %w", e.Family, e.Subject, err)
		}
	}
	for _, o := range s.Operations() {
		if o.Intent.Kind != operation.Checkpoint || o.State != "applied" {
			continue
		}
		events, err := r.Journal.Events(ctx, lifecycle.Of(kernel.OperationMachine, string(o.Intent.Key)))
		if err != nil {
			return nil, err
		}
		for _, e := range events {
			if e.Family == "operation.refused" {
				c := shownCheckpoint{Operation: string(o.Intent.Key)}
				if err := refusedAs(&c, e); err != nil {
					return nil, err
				}
				shown = append(shown, c)
			}
		}
	}
	return shown, nil
}

// judged adds what an event of the execution says of checkpoints.
func judged(shown *[]shownCheckpoint, e journal.Recorded) error {
	switch e.Family {
	case "execution.checkpoint_proposed":
		var c workorder.CheckpointEnvelope
		if err := canonical.Decode(e.Body, &c); err != nil {
			return err
		}
		*shown = append(*shown, shownCheckpoint{Operation: c.Operation, PayloadKind: c.PayloadKind, Payload: c.Payload, Bytes: c.PayloadBytes})
	case "execution.checkpointed":
		var c kernel.Checkpoint
		if err := canonical.Decode(e.Body, &c); err != nil {
			return err
		}
		(*shown)[len(*shown)-1].Position = c.Position
	case "execution.checkpoint_refused":
		return refusedAs(&(*shown)[len(*shown)-1], e)
	}
	return nil
}

func refusedAs(c *shownCheckpoint, e journal.Recorded) error {
	var f kernel.Failure
	if err := canonical.Decode(e.Body, &f); err != nil {
		return err
	}
	c.Code, c.Detail = f.Code, f.Detail
	return nil
}

// startLines say from which checkpoint an attempt started.
func startLines(p *attemptbundle.StartingPoint, s style) []string {
	if p == nil {
		return nil
	}
	return []string{
		fmt.Sprintf("from the checkpoint at position %d, of %s", p.Position, p.Attempt),
		s.faint(fmt.Sprintf("%s, payload %s", p.PayloadKind, p.Payload)),
	}
}

// checkpointLines say what became of the checkpoints of an attempt.
func checkpointLines(all []shownCheckpoint, s style) []string {
	var refused []string
	var newest *shownCheckpoint
	validated := 0
	for i, c := range all {
		if c.Code == "" {
			newest = &all[i]
			validated++
			continue
		}
		refused = append(refused, fmt.Sprintf("%s was refused: %s", operation.Key(c.Operation).Purpose(), plain(c.Detail)), s.faint(string(c.Code)))
	}
	var lines []string
	if newest != nil {
		lines = append(lines, fmt.Sprintf("%d validated, the newest at position %d", validated, newest.Position), s.faint("payload "+string(newest.Payload)))
	}
	return append(lines, refused...)
}
