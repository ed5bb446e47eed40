package reason_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"testing"

	"github.com/writ-runtime/writ/go/reason"
	"github.com/writ-runtime/writ/schemas"
	"pgregory.net/rapid"
)

func TestErrorIsOneSentence(t *testing.T) {
	for _, c := range []struct {
		name                string
		what, where, remedy string
		want                string
	}{
		{"whole", "the order names no tool", "order.yaml:3", "add tool.name", "the order names no tool (order.yaml:3): add tool.name [usage.invalid]"},
		{"no place", "the order names no tool", "", "add tool.name", "the order names no tool: add tool.name [usage.invalid]"},
		{"no remedy", "the order names no tool", "order.yaml:3", "", "the order names no tool (order.yaml:3) [usage.invalid]"},
		{"bare", "the order names no tool", "", "", "the order names no tool [usage.invalid]"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := reason.New(reason.UsageInvalid, c.what, c.where, c.remedy).Error(); got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
		})
	}
}

func TestExitOf(t *testing.T) {
	refusal := reason.New(reason.PolicyDenied, "no", "", "")
	for _, c := range []struct {
		name string
		err  error
		want int
	}{
		{"nil", nil, 0},
		{"plain error", io.EOF, 1},
		{"refusal", refusal, 4},
		{"wrapped", fmt.Errorf("submit: %w", refusal), 4},
		{"joined", errors.Join(io.EOF, refusal), 4},
		{"outer refusal wins", reason.New(reason.AttemptLost, "lost", "", "").Because(refusal), 24},
		{"unregistered code", reason.New("no.such_code", "x", "", ""), 1},
		{"typed nil", error((*reason.Refusal)(nil)), 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := reason.ExitOf(c.err); got != c.want {
				t.Errorf("got %d, want %d", got, c.want)
			}
		})
	}
}

func TestCauseStaysReachable(t *testing.T) {
	err := fmt.Errorf("open: %w", reason.New(reason.JournalIO, "the journal cannot be read", "", "").Because(io.ErrUnexpectedEOF))
	if !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Error("the cause is not in the chain")
	}
	r, ok := reason.As(err)
	if !ok || !reason.Is(err, reason.JournalIO) || reason.Is(err, reason.JournalFull) {
		t.Fatalf("As gave %v, %v", r, ok)
	}
	if want := r.Error() + "\n  because: unexpected EOF"; r.Detail() != want {
		t.Errorf("Detail: %s", r.Detail())
	}
}

// The tables are compared with the registry itself, so an edited registry turns this red even where the
// generated file cannot be regenerated.
func TestTablesMatchRegistry(t *testing.T) {
	data, err := schemas.FS.ReadFile("reasons.v1.json")
	if err != nil {
		t.Fatal(err)
	}
	var registry struct {
		Exits []struct {
			Name, Summary string
			Status        int
		}
		Reasons []struct{ Code, Exit, Summary string }
	}
	if err := json.Unmarshal(data, &registry); err != nil {
		t.Fatal(err)
	}
	if len(registry.Exits) != len(reason.Exits()) || len(registry.Reasons) != len(reason.Codes()) {
		t.Fatalf("go/reason/codes.go is stale: run go run ./tools/reasongen")
	}
	for _, e := range registry.Exits {
		x := reason.Exit(e.Name)
		if x.Status() != e.Status || x.Summary() != e.Summary {
			t.Errorf("exit %s is stale: run go run ./tools/reasongen", e.Name)
		}
	}
	for _, r := range registry.Reasons {
		c := reason.Code(r.Code)
		if !c.Registered() || string(c.Exit()) != r.Exit || c.Summary() != r.Summary {
			t.Errorf("reason %s is stale: run go run ./tools/reasongen", r.Code)
		}
	}
}

func TestEveryRefusalEndsInARegisteredNonZeroStatus(t *testing.T) {
	statuses := map[int]bool{}
	for _, e := range reason.Exits() {
		statuses[e.Status()] = true
	}
	rapid.Check(t, func(t *rapid.T) {
		code := reason.Code(rapid.OneOf(
			rapid.SampledFrom(reason.Codes()),
			rapid.Map(rapid.String(), func(s string) reason.Code { return reason.Code(s) }),
		).Draw(t, "code"))
		got := reason.ExitOf(reason.New(code, "x", "", ""))
		if got == 0 || !statuses[got] {
			t.Fatalf("code %q ends with status %d", code, got)
		}
	})
}
