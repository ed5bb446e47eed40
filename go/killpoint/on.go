//go:build killpoints

package killpoint

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/writ-runtime/writ/go/lifecycle"
	"github.com/writ-runtime/writ/go/operation"
)

// Turn is a point of a turn, which is named by what its events stand for. The identity is
// that of its batch.
func Turn(where string, events []lifecycle.Event, identity operation.Key) {
	passed().pass(where+"/"+describe(events), string(identity))
}

// Operation is a point of one operation.
func Operation(where string, key operation.Key) {
	passed().pass(where+"/"+string(key.Kind()), string(key))
}

// Reduced is the point after an event was reduced.
func Reduced(e lifecycle.Event) { passed().pass("reduce/"+string(e.Family), string(e.Subject)) }

// describe says in few words what a turn records: the operations that it settles and
// begins, and what becomes of attempt and work order.
func describe(events []lifecycle.Event) string {
	var settled, begun, attempt, order []string
	for _, e := range events {
		machine, what := e.Family.Split()
		switch machine {
		case "operation":
			kind := string(operation.Key(e.Subject.ID()).Kind())
			switch what {
			case "intended":
				begun = append(begun, kind)
			case "applied":
				settled = append(settled, kind)
			default:
				settled = append(settled, kind+"."+what)
			}
		case "attempt":
			attempt = append(attempt, what)
		case "work_order":
			order = append(order, what)
		}
	}
	var parts []string
	for _, p := range []struct {
		name string
		what []string
	}{{"settle", settled}, {"begin", begun}, {"attempt", attempt}, {"order", order}} {
		if len(p.what) > 0 {
			parts = append(parts, p.name+"="+strings.Join(p.what, "+"))
		}
	}
	return strings.Join(parts, ",")
}

// points is what this process has passed.
type points struct {
	log  *os.File
	name string // at which it kills itself, empty for nowhere
	at   int
	wait time.Duration

	mu     sync.Mutex
	counts map[string]int
}

//writ:immutable the function never changes; what it opens once is a log for tests
var passed = sync.OnceValue(open)

func open() *points {
	p := &points{counts: map[string]int{}}
	if path := os.Getenv("WRIT_KILLPOINTS_LOG"); path != "" {
		f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_APPEND|syscall.O_CLOEXEC, 0o600)
		if err != nil {
			die(err)
		}
		p.log = f
	}
	if order := os.Getenv("WRIT_KILL_AT"); order != "" {
		at := strings.LastIndexByte(order, '#')
		number, wait, late := strings.Cut(order[at+1:], "+")
		n, err := strconv.Atoi(number)
		if err == nil && late {
			p.wait, err = time.ParseDuration(wait)
		}
		if at < 0 || err != nil || n < 1 {
			die(fmt.Errorf("WRIT_KILL_AT=%s is not of the form NAME#N or NAME#N+DURATION", order))
		}
		p.name, p.at = order[:at], n
	}
	return p
}

// die ends a process that cannot do what a test asked it for: going on would show nothing.
func die(err error) {
	fmt.Fprintln(os.Stderr, "killpoint:", err)
	os.Exit(125)
}

// pass counts and notes a point, and kills the process if it is the one.
func (p *points) pass(name, detail string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.counts[name]++
	p.counts["*"]++
	if p.log != nil {
		// One write, which a killed process leaves whole or not at all.
		if _, err := p.log.WriteString(name + "\t" + detail + "\n"); err != nil {
			die(err)
		}
	}
	switch {
	case p.name == "" || p.name != name && p.name != "*" || p.counts[p.name] != p.at:
	case p.wait > 0:
		time.AfterFunc(p.wait, kill)
	default:
		kill()
		select {} // The signal is under way; nothing may happen before it arrives.
	}
}

func kill() { _ = syscall.Kill(os.Getpid(), syscall.SIGKILL) }
