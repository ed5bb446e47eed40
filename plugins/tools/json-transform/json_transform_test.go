package main_test

import (
	"maps"
	"path/filepath"
	"strings"
	"testing"

	"github.com/writ-runtime/writ/go/environment/wasm/worker/wire"
	"github.com/writ-runtime/writ/testing/toolrun"
)

const example = "../../../examples/json-transform"

func TestExample(t *testing.T) {
	r := toolrun.New(t, "WRIT_TEST_JSON_TRANSFORM", "github.com/writ-runtime/writ/plugins/tools/json-transform")
	inputs := toolrun.Tree(t, "data", filepath.Join(example, "data"))
	maps.Copy(inputs, toolrun.Tree(t, "transform", filepath.Join(example, "transform.json")))
	got := r.Golden(t, filepath.Join(example, "result.schema.json"), "result.json", inputs)
	if again := r.Run(t, inputs, "--data", "data", "--transform", "transform/transform.json"); !maps.Equal(got, again.Outputs) {
		t.Error("with the defaults named it writes other bytes")
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
