package policies_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path"
	"regexp"
	"strings"
	"testing"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/cover"
	"github.com/open-policy-agent/opa/v1/format"
	"github.com/open-policy-agent/opa/v1/storage/inmem"
	"github.com/open-policy-agent/opa/v1/tester"

	"github.com/writ-runtime/writ/go/capability"
	"github.com/writ-runtime/writ/go/policy"
	"github.com/writ-runtime/writ/policies"
	"github.com/writ-runtime/writ/schemas"
)

// floor is the share of a policy file, in percent, that the Rego tests must reach.
const floor = 90

func TestRegoTestsPassAndReachThePolicies(t *testing.T) {
	ctx := context.Background()
	modules, data := load(t)
	store := inmem.NewFromObject(data)
	txn, err := store.NewTransaction(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer store.Abort(ctx, txn)
	coverage := cover.New()
	results, err := tester.NewRunner().SetStore(store).SetModules(modules).SetCoverageQueryTracer(coverage).RunTests(ctx, txn)
	if err != nil {
		t.Fatal(err)
	}
	ran := 0
	for r := range results {
		ran++
		if !r.Pass() {
			t.Errorf("%s (%s)", r, r.Location)
		}
	}
	if ran == 0 {
		t.Fatal("no Rego test ran")
	}
	for name, f := range coverage.Report(modules).Files {
		lines := f.CoveredLines + f.NotCoveredLines
		if strings.HasSuffix(name, "_test.rego") || lines == 0 {
			continue
		}
		if share := 100 * f.CoveredLines / lines; share < floor {
			t.Errorf("%s: tests reach %d %% of it, below %d %%; not reached: %v", name, share, floor, f.NotCovered)
		}
	}
}

func TestEveryRuleIsNamedByATest(t *testing.T) {
	engine := engine(t)
	tests := map[capability.Layer]string{}
	for _, l := range capability.PolicyLayers() {
		b, err := fs.ReadFile(policies.FS, fmt.Sprintf("%s/%s_test.rego", l, l))
		if err != nil {
			t.Fatal(err)
		}
		tests[l] = string(b)
	}
	for _, r := range engine.Rules() {
		// Allowing rules are seen by what they allow; a denial that no test expects may be lost unseen.
		if denies(t, r) && !strings.Contains(tests[r.Layer], r.ID) {
			t.Errorf("%s:%d: no test expects %s", r.File, r.Line, r.ID)
		}
	}
}

// denies looks at the source, since an engine does not tell in which set a rule stands.
func denies(t *testing.T, r policy.Rule) bool {
	t.Helper()
	b, err := fs.ReadFile(policies.FS, strings.TrimPrefix(r.File, "policies/"))
	if err != nil {
		t.Fatal(err)
	}
	return strings.HasPrefix(strings.Split(string(b), "\n")[r.Line-1], "deny ")
}

func TestModulesAreFormatted(t *testing.T) {
	each(t, ".rego", func(name string, b []byte) {
		want, err := format.SourceWithOpts(name, b, format.Opts{RegoVersion: ast.RegoV1})
		if err != nil {
			t.Errorf("%s: %v", name, err)
		} else if string(want) != string(b) {
			t.Errorf("%s is not formatted; run opa fmt", name)
		}
	})
}

func TestModePolicyIsNeverLaxerThanTheRegistry(t *testing.T) {
	_, data := load(t)
	floors := data["mode"].(map[string]any)["floors"].(map[string]any)
	for _, a := range registry(t).Actions() {
		floor, ok := floors[a.Name].(string)
		if !ok {
			t.Errorf("policies/mode/data.json has no floor for %s", a.Name)
			continue
		}
		if !capability.Mode(floor).AtLeast(a.MinimumMode) {
			t.Errorf("%s: floor %s lies below the registered %s", a.Name, floor, a.MinimumMode)
		}
	}
	if len(floors) != len(registry(t).Actions()) {
		t.Errorf("policies/mode/data.json names %d actions, registered are %d", len(floors), len(registry(t).Actions()))
	}
}

func TestShadowKeepsEverythingInsideThatProposalLetsOut(t *testing.T) {
	_, data := load(t)
	leaves := fmt.Sprint(data["mode"].(map[string]any)["leaves"])
	for _, a := range registry(t).Actions() {
		if a.MinimumMode.AtLeast(capability.Proposal) != strings.Contains(leaves+" ", a.Name) {
			t.Errorf("%s: minimum mode %s, but leaves is %s", a.Name, a.MinimumMode, leaves)
		}
	}
}

func TestCeilingsHoldRegisteredGrantsInNormalForm(t *testing.T) {
	reg := registry(t)
	_, data := load(t)
	check := func(where string, list any) {
		for _, item := range list.([]any) {
			e := item.(map[string]any)
			destination, _ := e["destination"].(string)
			g, err := reg.ParseGrant(e["action"].(string), e["resource"].(string), destination)
			if err != nil {
				t.Errorf("%s: %v", where, err)
			} else if g.Resource.String() != e["resource"] || g.Destination.String() != destination {
				t.Errorf("%s: %v is not in normal form", where, e)
			}
		}
	}
	for name, r := range data["role"].(map[string]any)["roles"].(map[string]any) {
		check("role "+name, r.(map[string]any)["ceiling"])
		if mode := r.(map[string]any)["maximum_mode"].(string); !capability.Mode(mode).Valid() {
			t.Errorf("role %s: %q is no mode", name, mode)
		}
	}
	for name, d := range data["deployment"].(map[string]any)["deployments"].(map[string]any) {
		check("deployment "+name, d.(map[string]any)["own_work"])
	}
}

// Other code joins reasons and remedies into sentences of its own.
func TestRemediesAndReasonsAreSentences(t *testing.T) {
	sentence := regexp.MustCompile(`"(reason|remedy)": (?:sprintf\()?"([^"]*)"`)
	each(t, ".rego", func(name string, b []byte) {
		for _, m := range sentence.FindAllStringSubmatch(string(b), -1) {
			if strings.HasSuffix(m[2], ".") || m[2] == "" {
				t.Errorf("%s: %s %q ends with a full stop or is empty", name, m[1], m[2])
			}
		}
	})
}

func registry(t *testing.T) *capability.Registry {
	t.Helper()
	b, err := schemas.FS.ReadFile("actions.v1.json")
	if err != nil {
		t.Fatal(err)
	}
	reg, err := capability.ParseRegistry(b)
	if err != nil {
		t.Fatal(err)
	}
	return reg
}

func engine(t *testing.T) *policy.Engine {
	t.Helper()
	files, err := policy.Read(policies.FS)
	if err != nil {
		t.Fatal(err)
	}
	e, err := policy.Load(context.Background(), files, policy.Options{Registry: registry(t)})
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func each(t *testing.T, suffix string, do func(name string, b []byte)) {
	t.Helper()
	err := fs.WalkDir(policies.FS, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(name, suffix) {
			return err
		}
		b, err := fs.ReadFile(policies.FS, name)
		if err != nil {
			return err
		}
		do(name, b)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// load reads modules with their tests, and data merged at the root.
func load(t *testing.T) (map[string]*ast.Module, map[string]any) {
	t.Helper()
	modules, data := map[string]*ast.Module{}, map[string]any{}
	each(t, ".rego", func(name string, b []byte) {
		m, err := ast.ParseModuleWithOpts(path.Join("policies", name), string(b), ast.ParserOptions{RegoVersion: ast.RegoV1, ProcessAnnotation: true})
		if err != nil {
			t.Fatal(err)
		}
		modules[path.Join("policies", name)] = m
	})
	each(t, "data.json", func(name string, b []byte) {
		if err := json.Unmarshal(b, &data); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
	})
	return modules, data
}

func TestEmbeddedFilesAreThoseOfTheFolder(t *testing.T) {
	// Under Bazel the folder holds what the build embeds; under go test it shows a folder that nobody embedded.
	entries, err := os.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if !e.IsDir() {
			continue
		}
		if matches, _ := fs.Glob(os.DirFS(e.Name()), "*.rego"); len(matches) == 0 {
			continue
		}
		if _, err := fs.Stat(policies.FS, e.Name()); err != nil {
			t.Errorf("the folder %s is not embedded", e.Name())
		}
	}
}
