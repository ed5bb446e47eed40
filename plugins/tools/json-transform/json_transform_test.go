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

const example = "../../../examples/json-transform"

func TestExample(t *testing.T) {
	r := toolrun.New(t, "WRIT_TEST_JSON_TRANSFORM", "github.com/writ-runtime/writ/plugins/tools/json-transform")
	inputs := toolrun.Tree(t, "data", filepath.Join(example, "data"))
	inputs["transform/transform.json"] = text(t, filepath.Join(example, "transform.json"))
	res := r.Run(t, inputs)
	if err := res.Exit.Err("json-transform"); err != nil {
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
	if err := schema.ValidateResult([]byte(text(t, filepath.Join(example, "result.schema.json"))), []byte(res.Outputs["result.json"])); err != nil {
		t.Error(err)
	}
	if again := r.Run(t, inputs, "--data", "data", "--transform", "transform/transform.json"); !maps.Equal(res.Outputs, again.Outputs) {
		t.Error("a second run wrote other bytes")
	}
}

func TestWhatCannotBeTransformed(t *testing.T) {
	r := toolrun.New(t, "WRIT_TEST_JSON_TRANSFORM", "github.com/writ-runtime/writ/plugins/tools/json-transform")
	const good, declared = `[{"a":1}]`, `{"kind":"json-transform.v1","operations":[]}`
	for name, c := range map[string]struct {
		data, transform string
		args            []string
	}{
		"malformed data":        {`[{"a":1.5}]`, declared, nil},
		"malformed declaration": {good, `{"kind":"other"}`, nil},
		"no such data":          {good, declared, []string{"--data", "none"}},
		"leads out":             {good, declared, []string{"--transform", "../../etc/passwd"}},
		"unknown flag":          {good, declared, []string{"--colour"}},
	} {
		res := r.Run(t, map[string]string{"data/d.json": c.data, "transform/t.json": c.transform}, c.args...)
		if res.Exit.Kind != wire.ExitCode || res.Exit.Code != 1 || !strings.Contains(string(res.Exit.Stderr), "json-transform: ") || len(res.Outputs) != 0 {
			t.Errorf("%s: %+v, said %s, wrote %v", name, res.Exit.Exit, res.Exit.Stderr, res.Outputs)
		}
	}
}

func text(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}
