package requirements_test

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"testing"

	"github.com/writ-runtime/writ/testing/requirements"
)

const (
	ids    = `{"ids": [{"id": "A1", "summary": "a"}, {"id": "A2", "summary": "b"}, {"id": "A3", "summary": "c"}]}`
	claims = `{"requirements": {
		"A1": {"guard": "a: check", "tests": ["//go/a:a_test TestOne", "//go/a:a_test TestTwo/a_case", "//p:rego_test"],
			"mutations": [{"id": "a-check", "file": "go/a/a.go", "source": "if bad {", "disabled": "if false {", "red": ["//go/a:a_test TestOne/whatever"]}]},
		"A2": {"guard": "b: step", "tests": ["ci: main job", "//go/b:b_test TestSteps"],
			"mutations": [{"id": "step", "file": "go/b/b.go", "source": "x", "disabled": "y", "red": ["//go/b:b_test TestSteps"]}]},
		"A3": {"open": "nobody has begun"}}}`
	proven = "# the proven ones\nA1\nA2\n"
	events = `{"id":{"started":{}},"started":{}}
{"id":{"testResult":{"label":"@//go/a:a_test","run":1}},"testResult":{"status":"PASSED","testActionOutput":[{"name":"test.log","uri":"file:///a.log"},{"name":"test.xml","uri":"file:///a.xml"}]}}
{"id":{"testResult":{"label":"//go/b:b_test","run":1}},"testResult":{"status":"PASSED","testActionOutput":[{"name":"test.xml","uri":"file:///b.xml"}]}}
{"id":{"testResult":{"label":"//p:rego_test","run":1}},"testResult":{"status":"PASSED","testActionOutput":[]}}
`
	log = `<testsuites>
	<testsuite name="TestOne"><testcase name="TestOne"/></testsuite>
	<testsuite name="TestTwo"><testcase name="TestTwo"/><testcase name="TestTwo/a_case"/></testsuite>
</testsuites>`
	steps = "ok go build\nok main job\n"
)

// material is what a check is given.
type material struct{ ids, claims, proven, events, log, steps string }

func whole() material { return material{ids, claims, proven, events, log, steps} }

func (m material) check() (requirements.Report, error) {
	s, err := requirements.Parse([]byte(m.ids), []byte(m.claims), []byte(m.proven))
	if err != nil {
		return requirements.Report{}, err
	}
	var e requirements.Evidence
	err = errors.Join(
		e.ReadEvents(strings.NewReader(m.events), func(uri string) ([]byte, error) {
			switch uri {
			case "file:///a.xml":
				return []byte(m.log), nil
			case "file:///b.xml":
				return []byte(`<testsuites><testsuite name="TestSteps"><testcase name="TestSteps"/></testsuite></testsuites>`), nil
			}
			return nil, fs.ErrNotExist
		}),
		e.ReadSteps(strings.NewReader(m.steps)),
	)
	return requirements.Check(s, &e), err
}

func TestWhatIsShownIsProven(t *testing.T) {
	r, err := whole().check()
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Problems) > 0 || !slices.Equal(r.Proven, []string{"A1", "A2"}) || !slices.Equal(r.Open, []string{"A3"}) {
		t.Errorf("%+v", r)
	}
}

func TestEachWayToFail(t *testing.T) {
	replace := func(text *string, old, with string) { *text = strings.Replace(*text, old, with, 1) }
	for name, c := range map[string]struct {
		change func(*material)
		says   string
	}{
		"absent id":  {func(m *material) { replace(&m.claims, `"A3": {"open": "nobody has begun"}`, `"A2b": {"open": "x"}`) }, "A3: absent"},
		"foreign id": {func(m *material) { replace(&m.claims, `"A3"`, `"B9": {"open": "x"}, "A3"`) }, "B9: no such requirement"},
		"id twice":   {func(m *material) { replace(&m.ids, `"A2"`, `"A1"`) }, "A1: stands twice"},
		"no test":    {func(m *material) { replace(&m.claims, `"tests": ["ci: main job", "//go/b:b_test TestSteps"],`, ``) }, "A2: is not open and names no test"},
		"empty":      {func(m *material) { replace(&m.claims, `{"open": "nobody has begun"}`, `{}`) }, "A3: is not open and names no test"},
		"no guard":   {func(m *material) { replace(&m.claims, `"guard": "a: check", `, ``) }, "A1: names a test and no guard"},
		"open and tested": {func(m *material) {
			replace(&m.claims, `"open": "nobody has begun"`, `"open": "x", "tests": ["ci: main job"]`)
		}, "A3: is open and names"},
		"no proof":        {func(m *material) { replace(&m.claims, `//go/a:a_test TestOne`, `go/a TestOne`) }, "is no proof"},
		"not a test name": {func(m *material) { replace(&m.claims, `//go/a:a_test TestOne`, `//go/a:a_test One`) }, "is no proof"},
		"no mutation": {func(m *material) {
			replace(&m.claims, `[{"id": "step", "file": "go/b/b.go", "source": "x", "disabled": "y", "red": ["//go/b:b_test TestSteps"]}]`, `[]`)
		}, "A2: is not open and no mutation disables"},
		"open and mutated": {func(m *material) {
			replace(&m.claims, `"open": "nobody has begun"`, `"open": "nobody has begun", "mutations": [{"id": "x", "file": "f", "source": "x", "disabled": "y", "red": ["ci: main job"]}]`)
		}, "A3/x: \"ci: main job\" is none of"},
		"mutation without a name": {func(m *material) { replace(&m.claims, `"id": "step"`, `"id": "The Step"`) }, "A2/The Step: the mutation's id is no word"},
		"mutation named twice": {func(m *material) {
			replace(&m.claims, `"mutations": [{"id": "step"`, `"mutations": [{"id": "step", "file": "f", "source": "x", "disabled": "y", "red": ["//go/b:b_test TestSteps"]}, {"id": "step"`)
		}, "A2/step: the mutation's id is no word of its own"},
		"mutation outside":        {func(m *material) { replace(&m.claims, `"go/b/b.go"`, `"../b.go"`) }, "A2/step: \"../b.go\" is no path"},
		"mutation without a file": {func(m *material) { replace(&m.claims, `"go/b/b.go"`, `""`) }, "A2/step: \"\" is no path"},
		"mutation of nothing":     {func(m *material) { replace(&m.claims, `"disabled": "y"`, `"disabled": "x"`) }, "A2/step: it changes nothing"},
		"mutation without a test": {func(m *material) { replace(&m.claims, `"red": ["//go/b:b_test TestSteps"]`, `"red": []`) }, "A2/step: it names no test"},
		"mutation of other tests": {func(m *material) {
			replace(&m.claims, `"red": ["//go/b:b_test TestSteps"]`, `"red": ["//go/b:b_test TestStepsToo"]`)
		}, "is none of the requirement's Go tests"},
		"mutation seen by a step":  {func(m *material) { replace(&m.claims, `"red": ["//go/b:b_test TestSteps"]`, `"red": ["ci: main job"]`) }, "is none of the requirement's Go tests"},
		"mutation seen by no test": {func(m *material) { replace(&m.claims, `"red": ["//go/b:b_test TestSteps"]`, `"red": ["Steps"]`) }, "is no proof"},
		"test not run":             {func(m *material) { replace(&m.log, `<testcase name="TestOne"/>`, ``) }, "A1: //go/a:a_test TestOne: not run (the target passed"},
		"subtest not run":          {func(m *material) { replace(&m.log, `<testcase name="TestTwo/a_case"/>`, ``) }, "TestTwo/a_case: not run"},
		"test failed": {func(m *material) {
			replace(&m.log, `<testcase name="TestOne"/>`, `<testcase name="TestOne"><failure/></testcase>`)
		}, "TestOne: failed"},
		"test broke off": {func(m *material) {
			replace(&m.log, `<testcase name="TestOne"/>`, `<testcase name="TestOne"><error/></testcase>`)
		}, "TestOne: failed"},
		"test skipped": {func(m *material) {
			replace(&m.log, `<testcase name="TestOne"/>`, `<testcase name="TestOne"><skipped/></testcase>`)
		}, "TestOne: skipped"},
		"one of two runs failed": {func(m *material) {
			m.log = strings.Replace(m.log, `<testcase name="TestOne"/>`, `<testcase name="TestOne"><failure/></testcase><testcase name="TestOne"/>`, 1)
		}, "TestOne: failed"},
		"target not run": {func(m *material) { replace(&m.events, `"label":"//p:rego_test"`, `"label":"//p:other"`) }, "//p:rego_test: not run"},
		"target failed": {func(m *material) {
			replace(&m.events, `"status":"PASSED","testActionOutput":[]`, `"status":"TIMEOUT","testActionOutput":[]`)
		}, "//p:rego_test: failed"},
		"no Bazel run":     {func(m *material) { m.events = "" }, "TestOne: not run"},
		"step not run":     {func(m *material) { replace(&m.steps, "ok main job\n", "") }, "A2: ci: main job: not run"},
		"proven is open":   {func(m *material) { m.proven += "A3\n" }, "A3: was proven and is open again: nobody has begun"},
		"proven is absent": {func(m *material) { replace(&m.proven, "A2\n", "") }, "A2: is not open, and proven.txt does not list it"},
		"proven unknown":   {func(m *material) { m.proven += "A9\n" }, "A9: proven.txt lists it"},
		"proven twice":     {func(m *material) { m.proven += "A1\n" }, "A1: stands twice in proven.txt"},
	} {
		t.Run(name, func(t *testing.T) {
			m := whole()
			c.change(&m)
			if m == whole() {
				t.Fatal("nothing was changed")
			}
			r, err := m.check()
			if err != nil {
				t.Fatal(err)
			}
			if !slices.ContainsFunc(r.Problems, func(p string) bool { return strings.Contains(p, c.says) }) {
				t.Errorf("%q is not among\n%s", c.says, strings.Join(r.Problems, "\n"))
			}
			for _, id := range r.Proven {
				if strings.HasPrefix(c.says, id+": //") {
					t.Errorf("%s counts as proven", id)
				}
			}
		})
	}
}

func TestMaterialThatCannotBeRead(t *testing.T) {
	for name, change := range map[string]func(*material){
		"unknown field":    func(m *material) { m.claims = `{"requirements": {"A1": {"why": "x"}}}` },
		"id claimed twice": func(m *material) { m.claims = `{"requirements": {"A1": {"open": "x"}, "A1": {"open": "y"}}}` },
		"no ids":           func(m *material) { m.ids = `[]` },
		"broken events":    func(m *material) { m.events = "{" },
		"missing log":      func(m *material) { m.events = strings.Replace(m.events, "a.xml", "c.xml", 1) },
		"broken log":       func(m *material) { m.log = "<testsuites>" },
		"other steps":      func(m *material) { m.steps = "failed main job\n" },
	} {
		m := whole()
		change(&m)
		if r, err := m.check(); err == nil {
			t.Errorf("%s: accepted: %s", name, fmt.Sprint(r))
		}
	}
}
