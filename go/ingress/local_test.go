package ingress_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/writ-runtime/writ/go/ingress"
	"github.com/writ-runtime/writ/go/reason"
	"github.com/writ-runtime/writ/testing/fixture"
)

// sendEnv has this very program ask the host of a state folder, and print the answer into
// a file: as a process below the host does.
const sendEnv = "WRIT_TEST_SEND"

func TestMain(m *testing.M) {
	if role := os.Getenv(roleEnv); role != "" {
		os.Exit(play(role, os.Getenv(stateEnv)))
	}
	if state := os.Getenv(sendEnv); state != "" {
		var answer string
		served, err := ingress.Send(context.Background(), state, ingress.Request{ID: fixture.Delivery(1), Verb: ingress.Command, Content: "/writ wake"}, &answer)
		text := fmt.Sprintf("%t %q %v", served, answer, err)
		tmp := filepath.Join(state, "answer.tmp")
		if os.WriteFile(tmp, []byte(text), 0o600) != nil || os.Rename(tmp, filepath.Join(state, "answer")) != nil {
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// A process of an attempt or of an adapter descends from the host, also when it has cut
// itself loose. It is nobody who may command, whatever its user.
func TestAProcessBelowTheHostIsNoPerson(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for name, script := range map[string]string{
		"a child":     `"$0"`,
		"a grandson":  `sh -c '"$0"; true' "$0"; true`,
		"an orphan":   `(setsid "$0" & ) ; exit 0`,
		"an orphan 2": `setsid sh -c '"$0" &' "$0"; exit 0`,
	} {
		t.Run(name, func(t *testing.T) {
			state := t.TempDir()
			local, err := ingress.Listen(state)
			if err != nil {
				t.Fatal(err)
			}
			asked := make(chan string, 1)
			go local.Serve(t.Context(), func(_ context.Context, principal string, _ ingress.Request) (any, error) {
				asked <- principal
				return "done", nil
			})
			cmd := exec.CommandContext(t.Context(), "sh", "-c", script, self)
			cmd.Env = append(os.Environ(), sendEnv+"="+state)
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			answer := await(t, filepath.Join(state, "answer"))
			if !strings.Contains(answer, string(reason.IngressNotAPerson)) {
				t.Errorf("the answer is %s", answer)
			}
			if err := local.Close(); err != nil {
				t.Error(err)
			}
			select {
			case principal := <-asked:
				t.Errorf("it was taken for %s", principal)
			default:
			}
		})
	}
}

// await reads a file once it is there.
func await(t *testing.T, path string) string {
	t.Helper()
	for {
		raw, err := os.ReadFile(path)
		if err == nil {
			return string(raw)
		}
		if !errors.Is(err, os.ErrNotExist) || t.Context().Err() != nil {
			t.Fatal(err)
		}
	}
}

func TestNobodyServes(t *testing.T) {
	state := t.TempDir()
	served, err := ingress.Send(t.Context(), state, ingress.Request{}, new(string))
	if served || err != nil {
		t.Errorf("without a socket: %t, %v", served, err)
	}
	// A socket that a killed host left is nobody's.
	local, err := ingress.Listen(state)
	if err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(state, "command.sock")
	if err := os.Rename(name, name+".kept"); err != nil {
		t.Fatal(err)
	}
	if err := local.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(name+".kept", name); err != nil {
		t.Fatal(err)
	}
	served, err = ingress.Send(t.Context(), state, ingress.Request{}, new(string))
	if served || err != nil {
		t.Errorf("with a dead socket: %t, %v", served, err)
	}
	local, err = ingress.Listen(state)
	if err != nil {
		t.Fatalf("over a dead socket: %v", err)
	}
	_ = local.Close()
}
