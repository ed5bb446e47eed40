// Package crash_test pulls the plug on the writ command at every named point at which a
// crash matters (go/killpoint), starts it again, pulls it once more while it recovers, and
// then holds what the journal says against what each life was seen to do.
//
// The ordinary run takes three seeds a kind of operation. The full run is
//
//	go test ./testing/crash -timeout 3h -crash.seeds=100
//
// which also goes through every point once, before the seeds.
package crash_test

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/writ-runtime/writ/testing/built"
	"github.com/writ-runtime/writ/testing/testdist"
)

// fewSeeds is what the ordinary run takes.
const fewSeeds = 3

var seeds = flag.Int("crash.seeds", fewSeeds, "how many crashes of each kind of operation are drawn")

// suite is what the tests of this process share.
type suite struct {
	built *built.Builder
	dir   string

	once sync.Once
	// All below are set by once: the command built with kill points, the release set, the
	// orders, an empty repository, code compiled from the tools, and what a run of each
	// scenario passes.
	writ, dist, orders, project, cache string
	recorded                           []recording
}

var shared suite

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	flag.Parse()
	// Where the tests themselves were started with nohup, their children would ignore the
	// signal too, as writ should; a handler here gives them the default again.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGHUP)
	for name, value := range map[string]string{
		// A failure is shown as it was drawn: to shrink it means to crash for half a minute.
		"rapid.checks": strconv.Itoa(*seeds), "rapid.shrinktime": "0s", "rapid.nofailfile": "true",
	} {
		if err := flag.Set(name, value); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
	}
	// What writ leaves behind when it is killed becomes a child of this process, where it
	// can be found.
	err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
	if err == nil {
		// A short path, for the sockets of adapters are below it.
		shared.dir, err = os.MkdirTemp(short(os.TempDir()), "wc-")
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	status := built.Run(m, func(b *built.Builder) { shared.built = b })
	if status == 0 {
		_ = os.RemoveAll(shared.dir)
	} else {
		fmt.Fprintln(os.Stderr, "the states that failed are kept below", shared.dir)
	}
	return status
}

// short is a folder for temporary files in which a socket's path still has room.
func short(tmp string) string {
	if len(tmp) > 20 {
		return "/tmp"
	}
	return tmp
}

// root is the root of the source tree, from here. Under Bazel it is the root of the runfiles.
const root = "../.."

// ready builds what is tested and records what each scenario passes, once a process.
func ready(t *testing.T) *suite {
	t.Helper()
	s := &shared
	s.once.Do(func() {
		writ := s.built.Path(t, "WRIT_TEST_WRIT_KILLPOINTS", "github.com/writ-runtime/writ/go/cmd/writ", "CGO_ENABLED=0", "GOFLAGS="+os.Getenv("GOFLAGS")+" -tags=killpoints")
		s.dist = testdist.Make(t, s.built, root, filepath.Join(s.dir, "made"))
		s.project = filepath.Join(s.dir, "project")
		if out, err := exec.Command("git", "init", "-q", "--template=", "-b", "main", s.project).CombinedOutput(); err != nil {
			t.Fatalf("git init: %v\n%s", err, out)
		}
		s.orders = filepath.Join(s.dir, "orders")
		writeOrders(t, s.orders)
		recorded := record(t, s, writ)
		s.writ, s.recorded = writ, recorded
	})
	if s.writ == "" {
		t.Fatal("what is tested could not be built: see the first test that failed")
	}
	return s
}

// record runs each scenario without a crash, and fills the cache with the code of every tool.
func record(t *testing.T, s *suite, writ string) []recording {
	t.Helper()
	w := newWorld(t, s)
	w.writ = writ
	var all []recording
	for _, sc := range scenarios() {
		w.first(t, sc)
		l := w.live(t, sc, undisturbed)
		if l.status != sc.status {
			t.Fatalf("%s: exit status %d, want %d\n%s%s", sc.name, l.status, sc.status, l.out, l.errs)
		}
		w.observe(t, l)
		all = append(all, newRecording(sc, l))
	}
	w.settled(t)
	s.cache = filepath.Join(w.state, "cache")
	return all
}

func write(t testing.TB, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// copyAll copies a folder, following links: under Bazel every runfile is one. put makes
// one file of another.
func copyAll(from, to string, put func(from, to string) error) error {
	from, err := filepath.EvalSymlinks(from)
	if err != nil {
		return err
	}
	entries, err := os.ReadDir(from)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(to, 0o755); err != nil {
		return err
	}
	for _, e := range entries {
		f, d := filepath.Join(from, e.Name()), filepath.Join(to, e.Name())
		info, err := os.Stat(f)
		if err == nil && info.IsDir() {
			err = copyAll(f, d, put)
		} else if err == nil {
			err = put(f, d)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func copyFile(from, to string) error {
	raw, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	return os.WriteFile(to, raw, 0o600)
}
