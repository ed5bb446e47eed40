package workorder_test

import (
	"strings"
	"testing"

	"github.com/writ-runtime/writ/go/reason"
	"github.com/writ-runtime/writ/go/workorder"
)

func TestCheckPayload(t *testing.T) {
	const good = `{"kind":"writ.checkpoint.tool_progress.v1","next_action":"read on","position":3,"state":{"line":3,"seen":["a"]},"stop_condition":"all is read"}`
	if at, err := workorder.CheckPayload(workorder.ToolProgressKind, []byte(good)); at != 3 || err != nil {
		t.Fatalf("got %d, %v", at, err)
	}
	long := strings.Repeat("x", workorder.MaxProgressText+1)
	for name, c := range map[string]struct {
		kind, old, replacement string
		want                   reason.Code
	}{
		"another kind":           {"writ.checkpoint.other.v1", "", "", reason.CheckpointUnregisteredKind},
		"no kind":                {" ", "", "", reason.CheckpointUnregisteredKind},
		"says another kind":      {"", "tool_progress", "other", reason.CheckpointMalformed},
		"says no kind":           {"", `"kind":"writ.checkpoint.tool_progress.v1",`, "", reason.CheckpointMalformed},
		"no position":            {"", `"position":3,`, "", reason.CheckpointMalformed},
		"position 0":             {"", `"position":3`, `"position":0`, reason.CheckpointMalformed},
		"a position before it":   {"", `"position":3`, `"position":-3`, reason.CheckpointMalformed},
		"a position in between":  {"", `"position":3`, `"position":3.5`, reason.CheckpointMalformed},
		"no state":               {"", `"state":{"line":3,"seen":["a"]},`, "", reason.CheckpointMalformed},
		"a list for a state":     {"", `{"line":3,"seen":["a"]}`, `["a"]`, reason.CheckpointMalformed},
		"a state with a float":   {"", `"line":3`, `"line":3.0`, reason.CheckpointMalformed},
		"no next action":         {"", `"next_action":"read on",`, "", reason.CheckpointMalformed},
		"an empty next action":   {"", `"read on"`, `""`, reason.CheckpointMalformed},
		"a long next action":     {"", `read on`, long, reason.CheckpointMalformed},
		"no stop condition":      {"", `,"stop_condition":"all is read"`, "", reason.CheckpointMalformed},
		"an empty condition":     {"", `"all is read"`, `""`, reason.CheckpointMalformed},
		"a long condition":       {"", `all is read`, long, reason.CheckpointMalformed},
		"a field too many":       {"", `"state"`, `"run":"me","state"`, reason.CheckpointMalformed},
		"white space":            {"", `,"state"`, `, "state"`, reason.CheckpointMalformed},
		"a key twice":            {"", `"line":3`, `"line":3,"line":3`, reason.CheckpointMalformed},
		"another order":          {"", `"line":3,"seen":["a"]`, `"seen":["a"],"line":3`, reason.CheckpointMalformed},
		"cut short":              {"", `"stop_condition":"all is read"}`, "", reason.CheckpointMalformed},
		"bytes that are no text": {"", "read on", "\xff\xfe", reason.CheckpointMalformed},
	} {
		kind, payload := workorder.ToolProgressKind, strings.Replace(good, c.old, c.replacement, 1)
		if c.kind != "" {
			kind = c.kind
		}
		if _, err := workorder.CheckPayload(kind, []byte(payload)); !reason.Is(err, c.want) {
			t.Errorf("%s: %v, want %s", name, err, c.want)
		}
	}
}
