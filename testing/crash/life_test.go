package crash_test

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"pgregory.net/rapid"
)

// patience is how long a run may take, or a condition to come true. Nothing waits for it to
// pass but a test that fails.
const patience = time.Minute

// world is one state folder, and what is known of the lives that worked in it.
type world struct {
	suite            *suite
	writ             string
	dir, state, temp string
	lives            []life
	known            history
}

// What was done, in all worlds.
var worlds, lived, killed atomic.Int64

// newWorld makes a world with nothing in it but compiled code.
func newWorld(t rapid.TB, s *suite) *world {
	t.Helper()
	dir := filepath.Join(s.dir, fmt.Sprintf("w%d", worlds.Add(1)))
	w := &world{suite: s, writ: s.writ, dir: dir, state: filepath.Join(dir, "state"), temp: filepath.Join(dir, "t")}
	err := os.MkdirAll(w.temp, 0o755)
	if err == nil {
		err = os.Mkdir(w.state, 0o700)
	}
	if err == nil {
		err = w.openDestinations()
	}
	if err == nil {
		err = os.WriteFile(filepath.Join(w.state, "accounts.yaml"), []byte(accounts), 0o600)
	}
	if err == nil && s.cache != "" {
		err = copyAll(s.cache, filepath.Join(w.state, "cache"), os.Link)
	}
	if err != nil {
		t.Fatalf("make a world: %v", err)
	}
	return w
}

// openDestinations makes the places that accepted results may leave for.
func (w *world) openDestinations() error {
	project, reviews := filepath.Join(w.dir, "project"), filepath.Join(w.dir, "reviews")
	if err := os.Mkdir(reviews, 0o755); err != nil {
		return err
	}
	if err := copyAll(w.suite.project, project, copyFile); err != nil {
		return err
	}
	list := fmt.Sprintf("kind: writ.outbox_destinations.v1\nrepositories: [{name: project, path: %s}]\nreview: [{name: reviews, path: %s}]\n", project, reviews)
	return os.WriteFile(filepath.Join(w.state, "outbox.yaml"), []byte(list), 0o600)
}

// life is one run of writ, from its start to its end.
type life struct {
	scenario scenario
	plug     plug
	took     time.Duration
	// killed says that SIGKILL ended it; else status is its exit status.
	killed    bool
	status    int
	out, errs string
	// passed are the points that it passed, in order.
	passed []pass
}

type pass struct{ name, detail string }

func (l life) String() string { return fmt.Sprintf("%s, %v", l.scenario.name, l.plug) }

// first lives the life that a scenario has to recover from.
func (w *world) first(t rapid.TB, sc scenario) {
	t.Helper()
	if sc.after == "" {
		return
	}
	l := w.live(t, scenarios()[0], plug{at: sc.after})
	if !l.killed {
		t.Fatalf("%v: it came through with exit status %d\n%s", l, l.status, l.errs)
	}
	w.observe(t, l)
}

// live runs a scenario until it ends, or is killed.
func (w *world) live(t rapid.TB, sc scenario, p plug) life {
	t.Helper()
	log := filepath.Join(w.dir, fmt.Sprintf("passed-%d", len(w.lives)+1))
	cmd := exec.Command(w.writ, "run", "--state", w.state, filepath.Join(w.suite.orders, filepath.FromSlash(sc.order)))
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "WRIT_DIST=" + w.suite.dist, "TMPDIR=" + w.temp, "TERM=dumb", "WRIT_KILLPOINTS_LOG=" + log}
	if p.at != "" {
		cmd.Env = append(cmd.Env, "WRIT_KILL_AT="+p.at)
	}
	var out bytes.Buffer
	cmd.Stdout = &out
	errs, err := cmd.StderrPipe()
	if err != nil {
		t.Fatalf("%v", err)
	}
	begun := time.Now()
	if err := cmd.Start(); err != nil {
		t.Fatalf("%v", err)
	}
	late := time.AfterFunc(patience, func() { _ = cmd.Process.Signal(syscall.SIGQUIT) })
	if p.at == "" && p.after > 0 {
		defer time.AfterFunc(p.after, func() { _ = cmd.Process.Kill() }).Stop()
	}
	said := w.listen(cmd, sc, errs)
	_ = cmd.Wait() // How it ended is read from the process state.
	if !late.Stop() {
		t.Fatalf("%s, %v: it did not end\n%s", sc.name, p, said)
	}
	status := cmd.ProcessState.Sys().(syscall.WaitStatus)
	l := life{scenario: sc, plug: p, took: time.Since(begun), killed: status.Signal() == syscall.SIGKILL, status: status.ExitStatus(), out: out.String(), errs: said}
	if l.passed, err = passes(log); err != nil {
		t.Fatalf("%v", err)
	}
	w.lives = append(w.lives, l)
	if lived.Add(1); l.killed {
		killed.Add(1)
	}
	return l
}

// listen reads what a run says until it says no more, and interrupts it when the scenario
// wants that.
func (w *world) listen(cmd *exec.Cmd, sc scenario, errs io.Reader) string {
	var said strings.Builder
	var once sync.Once
	for lines := bufio.NewReader(errs); ; {
		line, err := lines.ReadString('\n')
		said.WriteString(line)
		if sc.interrupts(line) {
			once.Do(func() { _ = cmd.Process.Signal(interruption) })
		}
		if err != nil {
			return said.String()
		}
	}
}

// passes reads what a process noted.
func passes(log string) ([]pass, error) {
	raw, err := os.ReadFile(log)
	if os.IsNotExist(err) {
		return nil, nil // It was killed before the first point.
	}
	if err != nil {
		return nil, err
	}
	var all []pass
	for line := range strings.Lines(string(raw)) {
		name, detail, ok := strings.Cut(strings.TrimSuffix(line, "\n"), "\t")
		if !ok {
			return nil, fmt.Errorf("%s: %q is no point", log, line)
		}
		all = append(all, pass{name, detail})
	}
	return all, nil
}
