// Package e2e_test runs the writ command as a person would, against a real release set:
// good work, bad input, hostile tools, full disks, and every way of pulling the plug.
//
// The scripts in testdata are read by testscript; commands_test.go has the commands that
// are not testscript's own.
package e2e_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
	"golang.org/x/sys/unix"

	"github.com/writ-runtime/writ/testing/built"
	"github.com/writ-runtime/writ/testing/testdist"
)

// suite is what the tests of this process share.
type suite struct {
	built *built.Builder
	dir   string

	once sync.Once
	// bin is the folder of the writ command, dist the release set, cache a folder of code
	// compiled from its tools, examples a copy of the examples. All are set by once.
	bin, dist, cache, examples string
}

var shared suite

func TestMain(m *testing.M) {
	if os.Getenv(diskRole) != "" {
		os.Exit(holdDisk())
	}
	os.Exit(run(m))
}

func run(m *testing.M) int {
	// Where the tests themselves were started with nohup, their children would ignore the
	// signal too, as writ should; a handler here gives them the default again.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGHUP)
	// What writ leaves behind when it is killed becomes a child of this process, where it
	// can be found.
	err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
	if err == nil {
		shared.dir, err = os.MkdirTemp("", "writ-e2e-")
	}
	if err == nil {
		// Other users are among those who run writ here.
		err = os.Chmod(shared.dir, 0o755)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(shared.dir)
	return built.Run(m, func(b *built.Builder) { shared.built = b })
}

// ready builds what is tested, once a process.
func ready(t testing.TB) *suite {
	t.Helper()
	s := &shared
	s.once.Do(func() {
		bin := filepath.Join(s.dir, "bin")
		if err := os.Mkdir(bin, 0o755); err != nil {
			t.Fatal(err)
		}
		copyTree(t, s.built.Path(t, "WRIT_TEST_WRIT", "github.com/writ-runtime/writ/go/cmd/writ", "CGO_ENABLED=0"), filepath.Join(bin, "writ"))
		examples := filepath.Join(s.dir, "examples")
		copyTree(t, filepath.Join(built.Root(t), "examples"), examples)
		s.dist = testdist.Make(t, s.built, built.Root(t), filepath.Join(s.dir, "made"))
		s.cache = filepath.Join(s.dir, "cache")
		compile(t, filepath.Join(bin, "writ"), s.dist, s.cache, examples)
		s.bin, s.examples = bin, examples
	})
	if s.bin == "" {
		t.Fatal("what is tested could not be built: see the first test that failed")
	}
	return s
}

// compile fills a cache with the code of every tool, so that not each state folder of
// each script pays for that again.
func compile(t testing.TB, writ, dist, cache, examples string) {
	t.Helper()
	state := filepath.Join(filepath.Dir(cache), "compiling")
	orders := []string{
		filepath.Join(examples, "corpus-report", "work-order.yaml"), filepath.Join(examples, "json-transform", "work-order.yaml"),
	}
	for _, tool := range []string{"badtools", "empty"} {
		order := filepath.Join(filepath.Dir(cache), tool+".yaml")
		write(t, order, fmt.Sprintf("kind: writ.workorder.v1\ntitle: Compile\nmode: observe\nrole: analyst\nenvironment: {provider: wasm}\n"+
			"tool: {name: %s, arguments: [nothing]}\noutputs: {max_count: 1, max_bytes: 1000, paths: [{path: ok, media_type: text/plain, required: false}]}\n", tool))
		orders = append(orders, order)
	}
	for _, order := range orders {
		cmd := exec.Command(writ, "run", "--state", state, order)
		cmd.Env = []string{"WRIT_DIST=" + dist}
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%s: %v\n%s", cmd, err, out)
		}
	}
	copyTree(t, filepath.Join(state, "cache"), cache)
}

// TestScripts runs every script of testdata.
func TestScripts(t *testing.T) {
	s := ready(t)
	scratch := filepath.Join(s.dir, "work")
	if err := os.Mkdir(scratch, 0o755); err != nil && !errors.Is(err, os.ErrExist) {
		t.Fatal(err)
	}
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata",
		WorkdirRoot:         scratch,
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Cmds:                commands(s),
		Setup: func(e *testscript.Env) error {
			e.Setenv("PATH", s.bin+string(os.PathListSeparator)+os.Getenv("PATH"))
			e.Setenv("WRIT_DIST", s.dist)
			e.Setenv("EXAMPLES", s.examples)
			e.Values[runsKey{}], e.Values[disksKey{}] = map[string]*running{}, map[string]*heldDisk{}
			// A user that owns nothing must be able to come here.
			return os.Chmod(e.WorkDir, 0o755)
		},
	})
}

// environ is the environment of a command that a Go test starts.
func (s *suite) environ() []string {
	return []string{"PATH=" + s.bin + ":" + os.Getenv("PATH"), "WRIT_DIST=" + s.dist, "TERM=dumb"}
}

func copyTree(t testing.TB, from, to string) {
	t.Helper()
	if err := built.Copy(from, to); err != nil {
		t.Fatal(err)
	}
}

func write(t testing.TB, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// output runs a command of a Go test and returns its exit status and what it printed.
func (s *suite) output(t testing.TB, args ...string) (status int, out, errs string) {
	t.Helper()
	cmd := exec.Command(filepath.Join(s.bin, "writ"), args...)
	cmd.Env = s.environ()
	var o, e strings.Builder
	cmd.Stdout, cmd.Stderr = &o, &e
	if err := cmd.Run(); cmd.ProcessState == nil {
		t.Fatal(err)
	}
	return cmd.ProcessState.ExitCode(), o.String(), e.String()
}
