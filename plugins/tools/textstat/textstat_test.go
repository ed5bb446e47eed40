package main_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/writ-runtime/writ/go/environment/wasm/worker/wire"
	"github.com/writ-runtime/writ/testing/toolrun"
)

const example = "../../../examples/corpus-report"

func TestExampleReport(t *testing.T) {
	r := toolrun.New(t, "WRIT_TEST_TEXTSTAT", "github.com/writ-runtime/writ/plugins/tools/textstat")
	inputs := toolrun.Tree(t, "docs", filepath.Join(example, "docs"))
	r.Golden(t, filepath.Join(example, "report.schema.json"), "report.json", inputs, "--input", "docs", "--top", "5")
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
