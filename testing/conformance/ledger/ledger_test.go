package ledger_test

import (
	"flag"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/writ-runtime/writ/go/confine"
	"github.com/writ-runtime/writ/testing/built"
	"github.com/writ-runtime/writ/testing/conformance/ledger"
	"github.com/writ-runtime/writ/testing/parts"
)

var programs *built.Builder

// TestMain begins as a host does.
func TestMain(m *testing.M) {
	flags()
	if err := confine.CloseInherited(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(built.Run(m, func(b *built.Builder) { programs = b }))
}

func bench(t *testing.T) ledger.Bench {
	return ledger.Bench{Worker: parts.Worker(t, programs), Tool: parts.Empty(t, programs)}
}

func bad(t *testing.T, mode string) ledger.Adapter {
	return ledger.Adapter{
		Name: mode, Binary: programs.Path(t, "WRIT_TEST_BADADAPTER", "github.com/writ-runtime/writ/testing/adapters/badadapter", "CGO_ENABLED=0"),
		Manifest: filepath.Join("..", "..", "adapters", "badadapter", "manifest.json"),
	}
}

// The reference adapter conforms: the check finds nothing in an adapter that does what it is
// asked and nothing else.
func TestReferenceLocalConforms(t *testing.T) {
	r := ledger.Check(t, bench(t), ledger.Adapter{
		Name: "reference-local", Binary: programs.Path(t, "WRIT_TEST_REFERENCELOCAL", "github.com/writ-runtime/writ/plugins/adapters/referencelocal", "CGO_ENABLED=0"),
		Manifest: filepath.Join("..", "..", "..", "plugins", "adapters", "referencelocal", "manifest.json"),
	})
	for _, f := range r.Findings {
		t.Error(f)
	}
}

// An adapter that tries to go around the ledger gets nowhere, whichever way it takes, and the
// check says of each way that it was tried (O7).
func TestAnAdapterThatReachesOutIsDeniedAndNotConformant(t *testing.T) {
	temp, err := filepath.EvalSymlinks(os.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	// Where its folder will be there is something to reach: the check makes it below this.
	t.Setenv("TMPDIR", short(t, temp))
	listener, err := net.Listen("unix", filepath.Join(os.Getenv("TMPDIR"), "listens"))
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	stays := filepath.Join(os.Getenv("TMPDIR"), "stays")
	if err := os.WriteFile(stays, []byte("as it was"), 0o600); err != nil {
		t.Fatal(err)
	}
	before := named(t, "reaches")
	r := ledger.Check(t, bench(t), bad(t, "reaches"))
	tried := 0
	for _, line := range r.Log {
		if what, ok := strings.CutPrefix(line, "info tried to "); ok {
			if tried++; !strings.Contains(what, ": refused: ") {
				t.Errorf("it could %s", what)
			}
		}
	}
	if tried != 25 {
		t.Errorf("it tried %d things: %q", tried, r.Log)
	}
	if !contains(r.Log, "left behind: true") {
		t.Errorf("it left no process behind: %q", r.Log)
	}
	if !contains(r.Log, "may: nothing") || contains(r.Log, "may: nothingCap") {
		t.Errorf("it has privileges: %q", r.Log)
	}
	for _, want := range []string{
		"itself: socket", "itself: connect", "itself: socketpair", "itself: flock", "itself: fcntl", "itself: ioctl", "itself: prctl", "itself: memfd_create", "itself: write ", "itself: mkdir ", "itself: unlink ", "itself: chmod",
		"itself: ptrace", "itself: mount", "itself: unshare", "a launch that it cannot have",
	} {
		if !contains(r.Findings, want) {
			t.Errorf("the check does not say that it tried %q: %q", want, r.Findings)
		}
	}
	raw, err := os.ReadFile(stays)
	info, also := os.Stat(stays)
	if err != nil || also != nil || string(raw) != "as it was" || info.Mode().Perm() != 0o600 {
		t.Errorf("what was there is %q, %v, %v, %v", raw, info, err, also)
	}
	if _, err := os.Lstat(filepath.Join(os.Getenv("TMPDIR"), "outside")); !os.IsNotExist(err) {
		t.Errorf("it made something: %v", err)
	}
	// The process that it left behind is dead.
	alive := slices.DeleteFunc(named(t, "reaches"), func(f string) bool { return slices.Contains(before, f) })
	if len(alive) > 0 {
		t.Errorf("processes of it live: %v", alive)
	}
}

var vendor ledger.Adapter

// flags name an adapter of somebody else's.
func flags() {
	flag.StringVar(&vendor.Name, "adapter.name", "", "the name of the adapter that is to be checked")
	flag.StringVar(&vendor.Binary, "adapter.binary", "", "its binary, one static executable")
	flag.StringVar(&vendor.Manifest, "adapter.manifest", "", "its capability manifest")
}

// A vendor's own adapter conforms, where one is named by the flags.
func TestNamedAdapterConforms(t *testing.T) {
	if vendor.Name == "" {
		return
	}
	for _, f := range ledger.Check(t, bench(t), vendor).Findings {
		t.Error(f)
	}
}

// What an adapter keeps from the ledger, or tells it wrongly, is found too.
func TestAdaptersThatLieAreNotConformant(t *testing.T) {
	for _, mode := range []string{"liestart", "otherlaunch", "lieclaim", "otherdigest", "foreignkey", "foreignparent", "crashbefore"} {
		t.Run(mode, func(t *testing.T) {
			if r := ledger.Check(t, bench(t), bad(t, mode)); len(r.Findings) == 0 {
				t.Error("nothing is found")
			}
		})
	}
}

func contains(lines []string, what string) bool {
	for _, l := range lines {
		if strings.Contains(l, what) {
			return true
		}
	}
	return false
}

// short makes a folder whose path leaves room for sockets.
func short(t *testing.T, in string) string {
	t.Helper()
	dir, err := os.MkdirTemp(in, "c")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

// named returns the processes of a name, as they were started.
func named(t *testing.T, name string) []string {
	t.Helper()
	files, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	var alive []string
	for _, f := range files {
		raw, err := os.ReadFile(f)
		if first, _, _ := strings.Cut(string(raw), "\x00"); err == nil && first == name {
			alive = append(alive, f)
		}
	}
	return alive
}
