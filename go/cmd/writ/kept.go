package main

import (
	"fmt"
	"os"

	"github.com/writ-runtime/writ/go/dispatcher"
	"github.com/writ-runtime/writ/go/kernel"
	"github.com/writ-runtime/writ/go/lifecycle"
	"github.com/writ-runtime/writ/go/operation"
	"github.com/writ-runtime/writ/go/protocol"
	"github.com/writ-runtime/writ/go/reason"
	"github.com/writ-runtime/writ/go/retention"
	"github.com/writ-runtime/writ/go/workorder"
)

// kept is what is said of the workspace of an attempt whose order has it kept.
type kept struct {
	*protocol.Retention
	// Folder is where its files stand, empty once they are removed, and where nothing was
	// kept; Missing says that they do not stand there any more.
	Folder  string `json:"folder,omitempty"`
	Missing bool   `json:"missing"`
	// Ended is the reading by which its time was over, once it is removed.
	Ended *lifecycle.Observation `json:"ended"`
	// Why says why nothing was kept, or not in the first try; Code is the reason.
	Why  string      `json:"why,omitempty"`
	Code reason.Code `json:"code,omitempty"`
}

// newKept says what is kept of an attempt; nil where its order keeps nothing, or its
// environment has not ended.
func newKept(state string, s kernel.State) *kept {
	if s.Bundle == nil || !s.Bundle.Bundle().Environment.Retention.Keep {
		return nil
	}
	if r := s.Retained; r != nil {
		k := &kept{Retention: &r.Retention}
		if r.Ended {
			k.Ended = r.Expired
			return k
		}
		k.Folder = retention.Where(state, s.Resource)
		_, err := os.Lstat(k.Folder)
		k.Missing = os.IsNotExist(err)
		return k
	}
	if s.Of(kernel.EnvironmentMachine).State != "destroyed" {
		return nil
	}
	k := &kept{Why: "nothing was kept: the environment was gone before, and what it held with it", Code: reason.RetentionNothingLeft}
	for _, o := range s.Operations() {
		// What the tries to keep came to; those after them kept nothing, and say nothing of it.
		switch out := o.Record.Outcome; {
		case o.Intent.Kind != operation.Destroy || out.Code == "":
		case out.Code == reason.RetentionNothingLeft:
			k.Why = out.Detail
		default:
			k.Why, k.Code = "nothing could be kept: "+out.Detail, out.Code
		}
	}
	return k
}

func (k *kept) lines(s style) []string {
	switch {
	case k == nil:
		return nil
	case k.Retention == nil:
		return []string{plain(k.Why), s.faint(string(k.Code))}
	}
	what := fmt.Sprintf("%s, %s", count(k.Files, "file"), size(k.Bytes))
	switch {
	case k.Ended != nil:
		return []string{fmt.Sprintf("%s, until %s: removed", what, moment(k.Until.UnixMilli))}
	case k.Missing:
		return []string{fmt.Sprintf("%s, until %s: %s", what, moment(k.Until.UnixMilli), s.bad("not there any more")), plain(k.Folder)}
	}
	return []string{
		fmt.Sprintf("%s, until %s", what, moment(k.Until.UnixMilli)),
		plain(k.Folder), s.faint("manifest.json " + string(k.Manifest)),
	}
}

// expired is what `writ tick` says of what was kept and whose time is over.
type expired struct {
	Attempt workorder.AttemptID   `json:"attempt"`
	Files   int64                 `json:"files"`
	Bytes   int64                 `json:"bytes"`
	Until   lifecycle.Observation `json:"until"`
	// Waits says why it is not removed, empty if it is.
	Waits string `json:"waits,omitempty"`
}

// newExpired leaves out what waits for its time and nothing else.
func newExpired(all []dispatcher.Expired) []expired {
	out := []expired{}
	for _, e := range all {
		if e.Until.UnixMilli == 0 {
			out = append(out, expired{e.Attempt, e.Kept.Files, e.Kept.Bytes, e.Kept.Until, e.Waits})
		}
	}
	return out
}

func (e expired) line(s style) string {
	what := fmt.Sprintf("what was kept, %s, %s: ", count(e.Files, "file"), size(e.Bytes))
	if e.Waits != "" {
		return what + s.faint("waits for "+plain(e.Waits))
	}
	return what + s.good("removed")
}
