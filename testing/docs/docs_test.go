// Package docs_test runs every command of the documents that people start from.
package docs_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/writ-runtime/writ/testing/built"
	"github.com/writ-runtime/writ/tools/dist/gobuild"
)

// documents are the documents, in the order in which a person reads them.
var documents = []string{"README.md", "CONTRIBUTING.md", "SECURITY.md", "RATIONALE.md", "examples/README.md", "policies/README.md"}

// elsewhere are commands that this test does not run, and the line by which .ci/run
// does, by itself or among more.
var elsewhere = map[string]string{
	"./bazelw test //...":          "./bazelw test //... ",
	"./bazelw test //policies/...": "./bazelw test //... ",
	"./bazelw test //go/sdk/... //go/adapterhost/... //plugins/adapters/...": "./bazelw test //... ",
	"go build ./...":             "go build ./...",
	"go test ./go/...":           "go test ",
	"./bazelw run //tools/repro": "./bazelw run //tools/repro",
}

// byHand are commands that nothing runs, and why.
var byHand = map[string]string{
	"go test ./testing/crash/... -timeout 12h -crash.seeds=100": "it takes half an hour; the tests draw a few of its seeds",
	"go test ./testing/model -model.histories=2000 -timeout 1h": "it takes minutes; the tests draw a few histories",
	"go run ./tools/mutate":       "it takes a quarter of an hour; .ci/run runs its short form",
	"./bazelw run //:gazelle":     "it writes the tree; //:gazelle_test says when it would",
	"go run ./tools/reasongen":    "it writes the tree; its test says when it would",
	"go run ./tools/lifecycledoc": "it writes the tree; its test says when it would",
	"go run ./tools/dist -o DIR":  "its package makes the release set of this very test",
}

const writ = "./bazelw run //:writ -- "

func TestEveryCommand(t *testing.T) {
	root := built.Root(t)
	program, dist := built.Path(t, "WRIT_TEST_WRIT", "github.com/writ-runtime/writ/go/cmd/writ"), release(t, root)
	ci, err := os.ReadFile(filepath.Join(root, ".ci", "run"))
	if err != nil {
		t.Fatal(err)
	}
	// A person's copy of the tree: only what the commands read. They stand in one place
	// for all documents, as a person would.
	stand := t.TempDir()
	// Runfiles are links, which no order may read through.
	if err := built.Copy(filepath.Join(root, "examples"), filepath.Join(stand, "examples")); err != nil {
		t.Fatal(err)
	}
	for _, document := range documents {
		t.Run(document, func(t *testing.T) {
			for _, line := range commands(t, filepath.Join(root, document)) {
				command, exit := expected(t, line)
				arguments, ours := strings.CutPrefix(command, writ)
				if !ours {
					step, ok := elsewhere[command]
					if byHand[command] == "" && (!ok || !runs(string(ci), step)) {
						t.Errorf("nothing runs %q", command)
					}
					continue
				}
				run(t, stand, program, dist, arguments, exit)
			}
		})
	}
}

// runs reports whether a line of the script holds the step, comments left out.
func runs(script, step string) bool {
	for line := range strings.Lines(script) {
		if line, _, _ = strings.Cut(line, "#"); strings.Contains(line, step) {
			return true
		}
	}
	return false
}

// release is the release set: Bazel's, or one that the go command makes.
func release(t *testing.T, root string) string {
	t.Helper()
	if os.Getenv("WRIT_TEST_DIST") != "" {
		return built.Path(t, "WRIT_TEST_DIST", "")
	}
	dir := filepath.Join(t.TempDir(), "dist")
	if err := gobuild.Release(t.Context(), root, dir); err != nil {
		t.Fatal(err)
	}
	return dir
}

// commands returns the lines of the shell blocks of a document.
func commands(t *testing.T, path string) []string {
	t.Helper()
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	within := false
	for s := bufio.NewScanner(bytes.NewReader(raw)); s.Scan(); {
		switch line := strings.TrimSpace(s.Text()); {
		case strings.HasPrefix(line, "```"):
			within = line == "```sh"
		case within && line != "" && !strings.HasPrefix(line, "#"):
			lines = append(lines, line)
		}
	}
	return lines
}

// expected splits a line into its command and the exit status that its comment names.
func expected(t *testing.T, line string) (command string, exit int) {
	t.Helper()
	command, comment, _ := strings.Cut(line, " # ")
	if status, ok := strings.CutPrefix(comment, "exits "); ok {
		var err error
		if exit, err = strconv.Atoi(status); err != nil {
			t.Fatal(err)
		}
	}
	return strings.TrimSpace(command), exit
}

func run(t *testing.T, stand, program, dist, arguments string, want int) {
	t.Helper()
	args := strings.Fields(arguments)
	if i := slices.Index(args, "ATTEMPT"); i >= 0 {
		args[i] = newest(t, stand, program, dist)
	}
	out, exit := start(t, stand, program, dist, args...)
	if exit != want || len(out) == 0 {
		t.Errorf("%s exits %d, want %d:\n%s", arguments, exit, want, out)
	}
}

// newest returns the id of the attempt that was begun last.
func newest(t *testing.T, stand, program, dist string) string {
	t.Helper()
	out, exit := start(t, stand, program, dist, "status", "--json")
	var index struct {
		Attempts []struct {
			ID string `json:"id"`
		} `json:"attempts"`
	}
	if err := json.Unmarshal(out, &index); err != nil || exit != 0 || len(index.Attempts) == 0 {
		t.Fatalf("status: %v, exit %d\n%s", err, exit, out)
	}
	return index.Attempts[len(index.Attempts)-1].ID
}

func start(t *testing.T, stand, program, dist string, args ...string) ([]byte, int) {
	t.Helper()
	// Where a person stands reaches the program as it does under `bazel run`.
	cmd := exec.CommandContext(t.Context(), program, args...)
	cmd.Dir = t.TempDir()
	cmd.Env = append(os.Environ(), "BUILD_WORKING_DIRECTORY="+stand, "WRIT_DIST="+dist)
	out, err := cmd.CombinedOutput()
	var failed *exec.ExitError
	if err != nil && !errors.As(err, &failed) {
		t.Fatal(err)
	}
	return out, cmd.ProcessState.ExitCode()
}
