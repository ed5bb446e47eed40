package main_test

import (
	"flag"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/writ-runtime/writ/go/environment/wasm/worker/wire"
	"github.com/writ-runtime/writ/go/schema"
	"github.com/writ-runtime/writ/testing/toolrun"
)

// update writes the golden files anew. They are read by eye before they are committed.
var update = flag.Bool("update", false, "write the golden files")

const example = "../../../examples/corpus-report"

func TestExampleReport(t *testing.T) {
	r := toolrun.New(t, "WRIT_TEST_TEXTSTAT", "github.com/writ-runtime/writ/plugins/tools/textstat")
	inputs := toolrun.Tree(t, "docs", filepath.Join(example, "docs"))
	res := r.Run(t, inputs, "--input", "docs", "--top", "5")
	if err := res.Exit.Err("textstat"); err != nil {
		t.Fatal(err)
	}
	if len(res.Outputs) != 2 {
		t.Errorf("wrote %d files", len(res.Outputs))
	}
	for name, got := range res.Outputs {
		golden := filepath.Join("testdata", name)
		if *update {
			if err := os.WriteFile(golden, []byte(got), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if want := text(t, golden); got != want {
			t.Errorf("%s is not the golden one (run with -update to see the difference in git):\n%s", name, got)
		}
	}
	if err := schema.ValidateResult([]byte(text(t, filepath.Join(example, "report.schema.json"))), []byte(res.Outputs["report.json"])); err != nil {
		t.Error(err)
	}
	if again := r.Run(t, inputs, "--input", "docs", "--top", "5"); !maps.Equal(res.Outputs, again.Outputs) {
		t.Error("a second run wrote other bytes")
	}
}

func TestWhatCannotBeMeasured(t *testing.T) {
	r := toolrun.New(t, "WRIT_TEST_TEXTSTAT", "github.com/writ-runtime/writ/plugins/tools/textstat")
	for name, args := range map[string][]string{
		"no such input":   {"--input", "other"},
		"leads out":       {"--input", "../work"},
		"unknown flag":    {"--colour", "red"},
		"argument":        {"docs"},
		"top of nonsense": {"--top", "-1"},
	} {
		res := r.Run(t, map[string]string{"docs/a": "a\n"}, args...)
		if res.Exit.Kind != wire.ExitCode || res.Exit.Code != 1 || !strings.HasPrefix(lastLine(res.Exit.Stderr), "textstat: ") || len(res.Outputs) != 0 {
			t.Errorf("%s: %+v, said %s, wrote %v", name, res.Exit.Exit, res.Exit.Stderr, res.Outputs)
		}
	}
}

func lastLine(b []byte) string {
	lines := strings.Split(strings.TrimSpace(string(b)), "\n")
	return lines[len(lines)-1]
}

func text(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}
