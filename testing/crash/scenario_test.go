package crash_test

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// scenario is one way that an attempt can go without a crash.
type scenario struct {
	name string
	// order is the order's file, below the folder of orders.
	order string
	// status is the exit status of a run that nobody disturbs.
	status int
	// interrupt, if not empty, is what it prints before a person interrupts it.
	interrupt string
	// after is the point at which a run of the first scenario was killed before, empty for
	// none: this one has to recover from it.
	after string
}

func scenarios() []scenario {
	return []scenario{
		{name: "report", order: "corpus-report/work-order.yaml"},
		{name: "large", order: "large/work-order.yaml"}, // its result is a file of the artifact store
		{name: "denied", order: "denied/work-order.yaml", status: 4},
		{name: "failing", order: "failing.yaml", status: 20},
		{name: "timeout", order: "timeout.yaml", status: 21},
		{name: "cancelled", order: "loop.yaml", status: 23, interrupt: "writ: prepare: applied"},
		{name: "dies", order: "dies.yaml", status: 20},
		{name: "sends", order: "sends.yaml"},
		{name: "liestart", order: "liestart.yaml", status: 20},
		{name: "checkpoints", order: "checkpoints.yaml"},
		{name: "keeps", order: "keeps.yaml", status: 20},
		{name: "resets", order: "resets.yaml"},
		{name: "abandons", order: "small.yaml", after: "commit.after/attempt=reserved,order=submitted+reserved#1"},
		{name: "recovers", order: "small.yaml", after: "run.after/launch#1"},
		{name: "removes", order: "small.yaml", after: "run.before/cleanup#1"},
	}
}

// again is what runs after a crash: it closes what is open, and does some work of its own.
var again = scenario{name: "small", order: "small.yaml"}

// account is what small work draws on, in every world. It has room for all that is lost.
const account = "research"

const accounts = "kind: writ.accounts.v1\naccounts: [{name: " + account + ", ceiling: {wall_ms: 1000000000, calls: 0}}]\n"

// writeOrders makes the folder of orders.
func writeOrders(t *testing.T, dir string) {
	t.Helper()
	if err := copyAll(filepath.Join(root, "examples"), dir, copyFile); err != nil {
		t.Fatal(err)
	}
	if err := copyAll(filepath.Join(dir, "json-transform"), filepath.Join(dir, "large"), copyFile); err != nil {
		t.Fatal(err)
	}
	var books []string
	for i := range 600 {
		books = append(books, fmt.Sprintf(`{"title": "Book %d of a long shelf, so that the result is larger than a blob", "author": "nobody", "year": %d, "pages": 9, "shelf": "coast", "isbn": %d}`, i, 1000+i, i+1))
	}
	write(t, filepath.Join(dir, "large", "data", "books-c.json"), "["+strings.Join(books, ",\n")+"]\n")
	write(t, filepath.Join(dir, "sends.yaml"), `kind: writ.workorder.v1
title: For review
mode: proposal
role: operator
environment: {provider: wasm}
tool: {name: textstat, arguments: [--input, docs]}
inputs: [{name: docs, source: corpus-report/docs}]
outputs: {max_count: 1, max_bytes: 100000, paths: [{path: report.json, media_type: application/json}]}
proposals:
  - {purpose: report, effector: branch, destination: "repo:project"}
  - {purpose: packet, effector: review_packet, destination: "folder:reviews"}
`)
	order := func(name, tool, rest string) {
		write(t, filepath.Join(dir, name), "kind: writ.workorder.v1\ntitle: "+name+"\nmode: observe\nrole: analyst\ntool: "+tool+"\n"+
			"outputs: {max_count: 1, max_bytes: 1000, paths: [{path: ok, media_type: text/plain, required: false}]}\n"+rest)
	}
	const wasm = "environment: {provider: wasm}\n"
	order("small.yaml", "{name: empty}", wasm+"account: "+account+"\n")
	order("failing.yaml", "{name: badtools, arguments: [exit-3]}", wasm)
	order("loop.yaml", "{name: badtools, arguments: [loop]}", "environment: {provider: wasm, limits: {wall_ms: 600000}}\n")
	order("timeout.yaml", "{name: badtools, arguments: [loop]}", "environment: {provider: wasm, limits: {wall_ms: 300}}\n")
	// The first checkpoint is taken as it comes, and no second one within a day.
	write(t, filepath.Join(dir, "seed", "a"), "seed\n")
	order("checkpoints.yaml", `{name: hashchain, arguments: [--rounds, "60000", --every, "20000"]}`,
		wasm+"inputs: [{name: seed, source: seed}]\ncheckpoint: {policy: offered, interval_ms: 86400000}\n")
	order("keeps.yaml", "{name: badtools, arguments: [names]}", wasm+"retention: {keep: true, days: 7}\n")
	order("resets.yaml", "{name: empty}", "environment: {provider: wasm, reset: before_destroy}\n")
	order("dies.yaml", "{name: empty, arguments: [once]}", wasm+"executor: dies\n")
	order("liestart.yaml", "{name: empty, arguments: [once]}", wasm+"executor: liestart\n")
}

// recording is what a scenario passes when nobody disturbs it.
type recording struct {
	scenario scenario
	took     time.Duration
	// passes counts the passes of each point.
	passes map[string]int
}

func newRecording(sc scenario, l life) recording {
	r := recording{scenario: sc, took: l.took, passes: map[string]int{}}
	for _, p := range l.passed {
		r.passes[p.name]++
	}
	return r
}

// point is one named point of one scenario.
type point struct {
	scenario scenario
	took     time.Duration
	name     string
	// passes is how often the scenario passes it.
	passes int
}

// kinds groups the points of all scenarios by what is happening at them: an operation, a
// turn, or the reducing of events.
func kinds(all []recording) map[string][]point {
	groups := map[string][]point{}
	for _, r := range all {
		for _, name := range slices.Sorted(maps.Keys(r.passes)) {
			where, what, _ := strings.Cut(name, "/")
			if where == "reduce" {
				what = where
			}
			groups[what] = append(groups[what], point{r.scenario, r.took, name, r.passes[name]})
		}
	}
	return groups
}

// plug is when a life ends against its will; the zero value is never.
type plug struct {
	// at is NAME#N or NAME#N+DURATION, see go/killpoint.
	at string
	// after is a time after the start, where at is empty.
	after time.Duration
}

var undisturbed plug

func (p plug) String() string {
	switch {
	case p.at != "":
		return "killed at " + p.at
	case p.after > 0:
		return fmt.Sprintf("killed after %v", p.after)
	}
	return "undisturbed"
}

// interrupts sends the scenario's interruption once it has said what the scenario waits for.
func (sc scenario) interrupts(said string) bool {
	return sc.interrupt != "" && strings.Contains(said, sc.interrupt)
}

var interruption os.Signal = syscall.SIGINT
