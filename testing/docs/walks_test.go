package docs_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/writ-runtime/writ/testing/built"
)

// walks are the documents that a person follows from an empty folder.
var walks = []string{"docs/outbox.md", "docs/budgets.md", "docs/checkpoints.md", "docs/retention.md"}

// A document that begins in an empty folder works as it stands there, and the program
// prints what the document shows.
//
// The blocks `sh` and `console` are one session of one shell, from the first to the last.
// Where the document cuts something from an output it writes a line of one ellipsis; ids
// are shortened, and what differs each time is not compared: see variable. With -v the
// whole session is printed, from which a document can be written.
func TestWalks(t *testing.T) {
	root := built.Root(t)
	program, dist := built.Path(t, "WRIT_TEST_WRIT", "github.com/writ-runtime/writ/go/cmd/writ"), release(t, root)
	for _, document := range walks {
		t.Run(document, func(t *testing.T) {
			raw, err := os.ReadFile(filepath.Join(root, document))
			if err != nil {
				t.Fatal(err)
			}
			steps, err := parseWalk(string(raw))
			if err != nil {
				t.Fatal(err)
			}
			walk(t, steps, program, dist)
		})
	}
}

// step is what a person types, and what the document says comes of it.
type step struct {
	line   int
	typed  string
	exit   int
	prints []string
}

// parseWalk returns the steps of a document, in its order.
func parseWalk(document string) ([]step, error) {
	var steps []step
	fence := ""
	for i, line := range strings.Split(document, "\n") {
		if kind, ok := strings.CutPrefix(line, "```"); ok {
			if fence = kind; fence == "sh" {
				steps = append(steps, step{line: i + 1})
			}
			continue
		}
		typed, begins := strings.CutPrefix(line, "$ ")
		if fence == "console" && begins {
			command, status, found := strings.Cut(typed, " # exits ")
			exit, err := strconv.Atoi(status)
			if found && err != nil {
				return nil, fmt.Errorf("line %d: %w", i+1, err)
			}
			steps = append(steps, step{line: i + 1, typed: command, exit: exit})
			continue
		}
		if fence != "sh" && fence != "console" {
			continue
		}
		if len(steps) == 0 {
			return nil, fmt.Errorf("line %d: a console begins with what is typed", i+1)
		}
		switch last := &steps[len(steps)-1]; {
		case fence == "sh":
			last.typed += line + "\n"
		case strings.HasSuffix(last.typed, "\\") && len(last.prints) == 0:
			command, status, found := strings.Cut(line, " # exits ")
			last.typed += "\n" + command
			if found {
				last.exit, _ = strconv.Atoi(status)
			}
		default:
			last.prints = append(last.prints, line)
		}
	}
	return steps, nil
}

// walk types all of it into one shell that stands in an empty folder.
func walk(t *testing.T, steps []step, program, dist string) {
	t.Helper()
	stand, notes := t.TempDir(), t.TempDir()
	if err := os.Symlink(program, filepath.Join(notes, "writ")); err != nil {
		t.Fatal(err)
	}
	var script strings.Builder
	for i, s := range steps {
		fmt.Fprintf(&script, "{ %s\n} >'%s/%d.out' 2>&1; echo $? >'%s/%d.status'\n", s.typed, notes, i, notes, i)
	}
	// What it leaves in the background ends with it.
	script.WriteString("jobs -p >'" + notes + "/left'\n")
	ctx, stop := context.WithTimeout(t.Context(), 2*time.Minute)
	defer stop()
	cmd := exec.CommandContext(ctx, "bash", "-c", script.String())
	cmd.Dir = stand
	cmd.Env = append(os.Environ(), "PATH="+notes+string(os.PathListSeparator)+os.Getenv("PATH"), "WRIT_DIST="+dist, "BUILD_WORKING_DIRECTORY=")
	// What the shell says by itself is that somebody was killed.
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("the shell: %v\n%s", err, out)
	}
	if left, err := os.ReadFile(filepath.Join(notes, "left")); err != nil || len(left) > 0 {
		t.Errorf("left in the background: %s, %v", left, err)
	}
	for i, s := range steps {
		out, err := os.ReadFile(filepath.Join(notes, fmt.Sprintf("%d.out", i)))
		status, err2 := os.ReadFile(filepath.Join(notes, fmt.Sprintf("%d.status", i)))
		if err != nil || err2 != nil {
			t.Errorf("line %d: it was not reached", s.line)
			continue
		}
		if got := string(bytes.TrimSpace(status)); got != strconv.Itoa(s.exit) {
			t.Errorf("line %d: %s exits %s, want %d:\n%s", s.line, s.typed, got, s.exit, out)
		}
		t.Logf("%s\n%s", s.typed, out)
		rest := settled(stand, string(out))
		for shown := range strings.SplitSeq(strings.Join(s.prints, "\n"), "\n…") {
			shown = settled(stand, strings.TrimPrefix(shown, "…"))
			_, after, found := strings.Cut(rest, shown)
			if !found {
				t.Errorf("line %d: %s does not print\n%s\nbut\n%s", s.line, s.typed, shown, out)
				break
			}
			rest = after
		}
	}
}

// variable is what differs from one run to the next, and what stands for it.
var variable = []struct {
	is    *regexp.Regexp
	stand string
}{
	{regexp.MustCompile(`\b(att|wo|dlv|res)_[-0-9a-f]+`), "${1}_ID"},
	{regexp.MustCompile(`\bsha256:[0-9a-f]+…?`), "DIGEST"},
	{regexp.MustCompile(`\b[0-9a-f]{40}\b`), "COMMIT"},
	{regexp.MustCompile(`\d{4}-\d\d-\d\d \d\d:\d\d:\d\d`), "TIME"},
	{regexp.MustCompile(`\b\d+(\.\d+)? (µs|ms|s|min)\b`), "SPAN"},
	{regexp.MustCompile(`\buid:\d+`), "PERSON"},
	{regexp.MustCompile(`\bposition \d+`), "position N"},
	{regexp.MustCompile(`\b\d+ validated`), "N validated"},
	{regexp.MustCompile(`"(computed|started_at)":\d+`), `"$1":N`},
	{regexp.MustCompile(`\s+`), " "},
}

// settled is an output without what differs each time, and without its line ends: a
// document may break a line where it is too long.
func settled(stand, out string) string {
	out = strings.ReplaceAll(out, stand+"/", "")
	for _, v := range variable {
		out = v.is.ReplaceAllString(out, v.stand)
	}
	return strings.TrimSpace(out)
}
