package main

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/writ-runtime/writ/testing/built"
	"github.com/writ-runtime/writ/testing/requirements"
)

// tree is a small module with one guard, which one test holds and another does not look at.
// It also has a program that a test builds for itself.
var tree = map[string]string{
	"go.mod": "module example.org/tree\n\ngo 1.26\n",
	"guard/guard.go": `package guard

import "errors"

func Enter(age int) error {
	if age < 18 {
		return errors.New("too young")
	}
	return nil
}

func Most() int { return 10 }
`,
	"guard/guard_test.go": `package guard

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

func TestEnter(t *testing.T) {
	t.Run("too young", func(t *testing.T) {
		if Enter(17) == nil {
			t.Error("entered")
		}
	})
	t.Run("old enough", func(t *testing.T) {
		if err := Enter(18); err != nil {
			t.Error(err)
		}
	})
}

func TestNothing(t *testing.T) {}

func TestBreaksOff(t *testing.T) {
	done := make(chan struct{})
	go func() {
		if Enter(17) == nil {
			panic("entered")
		}
		close(done)
	}()
	<-done
}

func TestSkips(t *testing.T) {
	if Enter(17) == nil {
		t.Skip("nobody is kept out")
	}
}

func TestFillsTheDisk(t *testing.T) {
	for i := 0; Most() > 10; i++ {
		if err := os.WriteFile(filepath.Join(t.TempDir(), "x"), make([]byte, 1<<20), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

func TestFillsAFile(t *testing.T) {
	f, err := os.Create(filepath.Join(t.TempDir(), "x"))
	if err != nil {
		t.Fatal(err)
	}
	for Most() > 10 {
		if _, err := f.Write(make([]byte, 1<<20)); err != nil {
			t.Fatal(err)
		}
	}
}

func TestNeverEnds(t *testing.T) {
	for Most() > 10 {
	}
}

func TestIsRedAnyway(t *testing.T) { t.Error("red") }

func TestBuildsAProgram(t *testing.T) {
	program := filepath.Join(t.TempDir(), "program")
	if out, err := exec.Command("go", "build", "-o", program, "../program").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if err := exec.Command(program).Run(); err == nil {
		t.Error("the program let somebody in")
	}
}
`,
	"program/main.go": `package main

import (
	"os"

	"example.org/tree/guard"
)

func main() {
	if guard.Enter(17) != nil {
		os.Exit(1)
	}
}
`,
}

// The endings, each by a mutation that has it.
func TestEachEnding(t *testing.T) {
	built.GoCommand(t)
	root := t.TempDir()
	for name, text := range tree {
		path := filepath.Join(root, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	const young, most = "if age < 18 {", "return 10"
	mutation := func(name, file, source, disabled string, tests ...string) Trial {
		m := requirements.Mutation{ID: name, File: file, Source: source, Disabled: disabled}
		for _, test := range tests {
			m.Red = append(m.Red, "//guard:guard_test "+test)
		}
		return Trial{Name: name, Mutation: m}
	}
	guard := func(name, source, disabled string, tests ...string) Trial {
		return mutation(name, "guard/guard.go", source, disabled, tests...)
	}
	want := map[string]Ending{
		"seen": Red, "seen-by-subtest": Red, "seen-by-program": Red, "breaks-off": Red, "seen-by-two": Red,
		"unseen": Green, "unseen-by-one-of-two": Green, "unseen-by-subtest": Green,
		"gone": Unfound, "twice": Unfound, "no-file": Unfound,
		"unbuilt": Unbuilt, "unbuilt-program": Unbuilt, "skips": NeverRan,
		"no-test": NotSound, "red-anyway": NotSound,
		"fills-the-disk": Unbounded, "fills-a-file": Unbounded, "never-ends": Unbounded,
	}
	trials := []Trial{
		guard("seen", young, "if false {", "TestEnter"),
		guard("seen-by-subtest", young, "if false {", "TestEnter/too_young"),
		guard("seen-by-program", young, "if false {", "TestBuildsAProgram"),
		guard("breaks-off", young, "if false {", "TestBreaksOff"),
		guard("seen-by-two", young, "if false {", "TestEnter", "TestBuildsAProgram"),
		guard("unseen", young, "if false {", "TestNothing"),
		guard("unseen-by-one-of-two", young, "if false {", "TestEnter", "TestNothing"),
		guard("unseen-by-subtest", young, "if false {", "TestEnter/old_enough"),
		guard("gone", "if age < 21 {", "if false {", "TestEnter"),
		guard("twice", "return", "panic", "TestEnter"),
		mutation("no-file", "guard/nothing.go", young, "if false {", "TestEnter"),
		guard("unbuilt", young, "if fals {", "TestEnter"),
		mutation("unbuilt-program", "program/main.go", "os.Exit(1)", "os.Quit(1)", "TestBuildsAProgram"),
		guard("skips", young, "if false {", "TestSkips"),
		guard("no-test", young, "if false {", "TestNobodyWrote"),
		guard("red-anyway", young, "if false {", "TestIsRedAnyway"),
		guard("fills-the-disk", most, "return 11", "TestFillsTheDisk"),
		guard("fills-a-file", most, "return 11", "TestFillsAFile"),
		guard("never-ends", most, "return 11", "TestNeverEnds"),
	}
	bounds := map[string]Bounds{
		"fills-the-disk": {Time: time.Hour, Folder: 64 << 20, File: 1 << 40},
		"fills-a-file":   {Time: time.Hour, Folder: 1 << 40, File: 64 << 20},
		"never-ends":     {Time: 20 * time.Second, Folder: 1 << 40, File: 1 << 40},
	}
	groups := map[string][]Trial{}
	for _, trial := range trials {
		key := ""
		if _, own := bounds[trial.Name]; own {
			key = trial.Name
		}
		groups[key] = append(groups[key], trial)
	}
	bounds[""] = Bounds{Time: time.Hour, Folder: 1 << 40, File: 1 << 40}
	seen := 0
	// The group without a bound of its own comes first: what is bounded in time then finds
	// most of what it needs built.
	for _, key := range slices.Sorted(maps.Keys(groups)) {
		group := groups[key]
		verdicts, err := Machine{Root: root, Bounds: bounds[key], Jobs: 2}.Run(t.Context(), group)
		if err != nil {
			t.Fatal(err)
		}
		notRed := 0
		for _, v := range verdicts {
			seen++
			if v.Ending != Red {
				notRed++
			}
			if v.Ending != want[v.Name] {
				t.Errorf("%s: %q, want %q\n%s", v.Name, v.Ending, want[v.Name], v.Why)
			}
		}
		var table strings.Builder
		if bad := Table(&table, verdicts); bad != notRed || !strings.Contains(table.String(), group[0].Name) {
			t.Errorf("%d are not red, the table says %d\n%s", notRed, bad, table.String())
		}
	}
	if seen != len(want) {
		t.Errorf("%d endings, want %d", seen, len(want))
	}
	// The tree was never touched.
	for name, text := range tree {
		if got, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(name))); err != nil || string(got) != text {
			t.Errorf("%s was changed: %v", name, err)
		}
	}
}

func TestChoose(t *testing.T) {
	set, err := requirements.Committed()
	if err != nil {
		t.Fatal(err)
	}
	all, err := Choose(set, "", false)
	if err != nil {
		t.Fatal(err)
	}
	short, err := Choose(set, "", true)
	if err != nil || len(short) == 0 || len(short) >= len(all) {
		t.Errorf("%d in the short form of %d, %v", len(short), len(all), err)
	}
	one, err := Choose(set, all[0].Name, false)
	if err != nil || len(one) != 1 || one[0].Name != all[0].Name {
		t.Errorf("%v, %v", one, err)
	}
	id, _, _ := strings.Cut(all[0].Name, "/")
	if some, err := Choose(set, id+","+all[len(all)-1].Name, false); err != nil || len(some) < 2 {
		t.Errorf("%v, %v", some, err)
	}
	for _, nothing := range []string{"B999", "B1/no-such", all[0].Name + ",nothing"} {
		if got, err := Choose(set, nothing, false); err == nil {
			t.Errorf("%q chose %v", nothing, got)
		}
	}
}
