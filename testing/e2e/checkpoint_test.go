package e2e_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/writ-runtime/writ/go/canonical"
	"github.com/writ-runtime/writ/go/journal/sqlite"
	"github.com/writ-runtime/writ/go/kernel"
	"github.com/writ-runtime/writ/go/ledger"
	"github.com/writ-runtime/writ/go/workorder"
	"github.com/writ-runtime/writ/testing/fixture"
	"github.com/writ-runtime/writ/testing/testdist"
)

// rounds is how long the chain is: some seconds of work, with a checkpoint every hundredth.
const rounds = 400_000

// chainOrder is a work order whose tool takes a while and checkpoints.
var chainOrder = fmt.Sprintf(`kind: writ.workorder.v1
title: Chain
mode: observe
role: analyst
environment: {provider: wasm}
tool: {name: hashchain, arguments: [--input, seed, --rounds, "%d", --every, "%d"]}
inputs: [{name: seed, source: seed}]
outputs: {result: chain.json, max_count: 1, max_bytes: 1000, paths: [{path: chain.json, media_type: application/json}]}
checkpoint: {policy: offered, interval_ms: 10}
`, rounds, rounds/100)

// chainEnd is what the chain comes to, computed here.
func chainEnd() string {
	file := sha256.Sum256([]byte("seed\n"))
	chain := sha256.Sum256(file[:])
	for range rounds {
		chain = sha256.Sum256(chain[:])
	}
	return hex.EncodeToString(chain[:])
}

// chained is the state folder and order of one test.
type chained struct {
	*suite
	t            *testing.T
	state, order string
}

func newChained(t *testing.T) *chained {
	t.Helper()
	s := ready(t)
	dir := t.TempDir()
	c := &chained{suite: s, t: t, state: filepath.Join(dir, "state"), order: filepath.Join(dir, "order.yaml")}
	if err := os.MkdirAll(filepath.Join(dir, "seed"), 0o755); err != nil {
		t.Fatal(err)
	}
	copyTree(t, s.cache, filepath.Join(c.state, "cache"))
	write(t, c.order, chainOrder)
	write(t, filepath.Join(dir, "seed", "a"), "seed\n")
	return c
}

// begun runs the order, and returns it once it has taken some checkpoints.
func (c *chained) begun(verb ...string) *running {
	c.t.Helper()
	cmd := exec.Command(filepath.Join(c.bin, "writ"), append(verb, "--state", c.state, c.order)...)
	cmd.Env = c.environ()
	r, err := begin(cmd)
	if err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(func() { _ = r.cmd.Process.Kill(); <-r.done })
	late := time.After(patience)
	for {
		said, more := r.said()
		if strings.Count(said, "writ: checkpoint: applied") >= 5 {
			return r
		}
		select {
		case <-more:
		case <-r.done:
			c.t.Fatalf("it ended before it was killed:\n%s", said)
		case <-late:
			c.t.Fatalf("it takes no checkpoints:\n%s", said)
		}
	}
}

// killed runs the order, and kills the host in the middle of it.
func (c *chained) killed() {
	c.t.Helper()
	r := c.begun("run")
	if err := r.cmd.Process.Kill(); err != nil {
		c.t.Fatal(err)
	}
	if status, err := r.end(); status != 128+int(syscall.SIGKILL) || err != nil {
		c.t.Fatalf("exit status %d, %v", status, err)
	}
	if err := orphansGone(); err != nil {
		c.t.Error(err)
	}
}

// shownAttempt is what `writ show` prints, as far as these tests look.
type shownAttempt struct {
	ID, State, Environment, Denied string
	Order                          string `json:"work_order"`
	Result                         *struct{ Conclusion string }
	StartsFrom                     *struct {
		Attempt  string
		Position int64
		Payload  string
	} `json:"starts_from"`
	Checkpoints []struct {
		Position int64
		Payload  string
		Code     string
	}
	Outputs []struct{ Path, Digest string }
	Events  []struct{ Family string }
}

func (c *chained) json(into any, args ...string) {
	c.t.Helper()
	status, out, errs := c.output(c.t, append(args, "--json", "--state", c.state)...)
	if err := json.Unmarshal([]byte(out), into); err != nil || status != 0 {
		c.t.Fatalf("writ %v: exit status %d, %v\n%s%s", args, status, err, out, errs)
	}
}

// attempts shows every attempt.
func (c *chained) attempts() (all []shownAttempt) {
	c.t.Helper()
	var index struct{ Attempts []struct{ ID string } }
	c.json(&index, "status")
	for _, a := range index.Attempts {
		var one shownAttempt
		c.json(&one, "show", a.ID)
		all = append(all, one)
	}
	return all
}

// tickUntil ticks until there are so many attempts: the next one waits for a pause.
func (c *chained) tickUntil(attempts int, args ...string) {
	c.t.Helper()
	for late := time.Now().Add(patience); ; {
		if status, out, errs := c.output(c.t, append([]string{"tick", "--state", c.state}, args...)...); status != 0 {
			c.t.Fatalf("tick: exit status %d\n%s%s", status, out, errs)
		}
		var index struct{ Attempts []struct{ ID string } }
		if c.json(&index, "status"); len(index.Attempts) >= attempts {
			return
		}
		if time.Now().After(late) {
			c.t.Fatalf("there are still %d attempts", len(index.Attempts))
		}
	}
}

// wentOn holds two attempts against each other: the first was lost, fenced and closed, and
// the second went on from its newest checkpoint to the end of the chain.
func (c *chained) wentOn(all []shownAttempt) {
	c.t.Helper()
	if len(all) != 2 {
		c.t.Fatalf("there are %d attempts", len(all))
	}
	first, second := all[0], all[1]
	if first.Result == nil || first.Result.Conclusion != "lost" || first.State != "retryable_failed" || first.Environment != "destroyed" || !first.has("attempt.fenced") {
		c.t.Errorf("the first is %+v", first)
	}
	if second.Result == nil || second.Result.Conclusion != "succeeded" || second.StartsFrom == nil || len(first.Checkpoints) == 0 {
		c.t.Fatalf("the second is %+v\nafter %+v", second, first.Checkpoints)
	}
	newest := first.Checkpoints[len(first.Checkpoints)-1]
	if from := second.StartsFrom; from.Attempt != first.ID || from.Position != newest.Position || from.Payload != newest.Payload || newest.Code != "" {
		c.t.Errorf("the second started from %+v, the newest of the first is %+v", from, newest)
	}
	for _, k := range second.Checkpoints {
		if k.Position <= newest.Position {
			c.t.Errorf("the second took a checkpoint at %d, and started at %d", k.Position, newest.Position)
		}
	}
	c.compiledAnew(first.ID, second.ID, newest.Payload)
	status, out, _ := c.output(c.t, "artifacts", "get", second.Outputs[0].Digest, "--state", c.state)
	var chain struct {
		Rounds, Computed int64
		Digest           string
		StartedAt        int64 `json:"started_at"`
	}
	if err := json.Unmarshal([]byte(out), &chain); err != nil || status != 0 {
		c.t.Fatalf("exit status %d, %v\n%s", status, err, out)
	}
	if chain.Digest != chainEnd() || chain.Rounds != rounds {
		c.t.Errorf("the chain came to %+v", chain)
	}
	if chain.StartedAt != newest.Position || chain.Computed != rounds-newest.Position {
		c.t.Errorf("it computed %d rounds from %d on, and the checkpoint covered %d", chain.Computed, chain.StartedAt, newest.Position)
	}
	_, out, _ = c.output(c.t, "show", second.ID, "--state", c.state)
	if want := fmt.Sprintf("from the checkpoint at position %d, of %s", newest.Position, first.ID); !strings.Contains(out, want) {
		c.t.Errorf("writ show does not say %q:\n%s", want, out)
	}
	if status, out, errs := c.output(c.t, "verify", "--state", c.state); status != 0 {
		c.t.Errorf("verify: exit status %d\n%s%s", status, out, errs)
	}
}

// compiledAnew reads both attempts from the journal alone: the second has a reservation, a
// fence, a context, inputs and a policy decision of its own, and the payload is in the ones
// that it has to be in.
func (c *chained) compiledAnew(first, second, payload string) {
	c.t.Helper()
	store, err := sqlite.Open(c.t.Context(), c.state, sqlite.Options{})
	if err != nil {
		c.t.Fatal(err)
	}
	defer store.Close()
	k := fixture.Kernel(c.t)
	load := func(id string) kernel.State {
		s, err := ledger.Load(c.t.Context(), store, k, workorder.AttemptID(id))
		if err != nil {
			c.t.Fatal(err)
		}
		return s
	}
	was, is := load(first), load(second)
	before, after := was.Bundle.Bundle(), is.Bundle.Bundle()
	if was.Generation != before.Fence.Generation+1 || is.Generation != 1 || string(after.Fence.Attempt) != second || after.Attempt.Ordinal != 2 {
		c.t.Errorf("the first stands at generation %d of %+v, the second at %d of %+v", was.Generation, before.Fence, is.Generation, after.Fence)
	}
	if before.Reservation == after.Reservation || before.Context == after.Context || before.Policy.Decision == after.Policy.Decision ||
		was.Reserved.Digests.Context != before.Context || is.Reserved.Digests.Context != after.Context || before.StartsFrom != nil {
		c.t.Errorf("the second was not compiled anew:\n%s\n%s", was.Bundle.Bytes(), is.Bundle.Bytes())
	}
	raw, err := store.Blob(c.t.Context(), after.Context)
	var given workorder.ContextPackage
	if err == nil {
		err = canonical.Decode(raw, &given)
	}
	if err != nil || len(given.Artifacts) != 1 || string(given.Artifacts[0]) != payload {
		c.t.Errorf("the context of the second is %+v, %v", given, err)
	}
	if in := after.Inputs.Inputs; len(in) != 2 || in[1].Name != workorder.CheckpointInput || string(in[1].Files[0].Digest) != payload {
		c.t.Errorf("the second is given %+v", in)
	}
	if is.Checkpoint == nil || was.Order.Digest != is.Order.Digest {
		c.t.Errorf("the order's newest checkpoint is %+v", is.Checkpoint)
	}
}

func (a shownAttempt) has(family string) bool {
	for _, e := range a.Events {
		if e.Family == family {
			return true
		}
	}
	return false
}

// The host is killed in the middle of an attempt. The next start fences, reconciles and
// closes it, and the attempt after it does not do again what its checkpoint covered (K5).
func TestTheNextAttemptGoesOnAfterTheHostWasKilled(t *testing.T) {
	c := newChained(t)
	c.killed()
	c.tickUntil(2)
	c.wentOn(c.attempts())
}

// The same, when it is the environment that dies under a host that lives.
func TestTheNextAttemptGoesOnAfterTheWorkerWasKilled(t *testing.T) {
	c := newChained(t)
	r := c.begun("run")
	found := false
	for pid, exe := range sealedChildren(r.cmd.Process.Pid) {
		if strings.Contains(exe, "writ-wasm") {
			found = true
			if err := unix.Kill(pid, unix.SIGKILL); err != nil {
				t.Fatal(err)
			}
		}
	}
	if status, err := r.end(); !found || status != 0 || err != nil {
		said, _ := r.said()
		t.Fatalf("found %v, exit status %d, %v\n%s", found, status, err, said)
	}
	c.wentOn(c.attempts())
}

// Policies that changed between the attempts are those of the second: it is compiled and
// decided anew, and what they do not allow does not begin, checkpoint or not (K5).
func TestTheNextAttemptIsDecidedUnderThePoliciesOfItsDay(t *testing.T) {
	s := ready(t)
	deployment := func(old, replacement string) func(string, []byte) []byte {
		return func(path string, raw []byte) []byte {
			if path != "deployment/data.json" {
				return raw
			}
			if !bytes.Contains(raw, []byte(old)) {
				t.Fatalf("%s has no %s", path, old)
			}
			return bytes.ReplaceAll(raw, []byte(old), []byte(replacement))
		}
	}
	for name, test := range map[string]struct {
		edit func(path string, raw []byte) []byte
		// why is what the refusal says; empty for policies that allow it.
		why string
	}{
		"another word":       {deployment("One person's machine", "Somebody's machine"), ""},
		"the tool":           {deployment(`, "hashchain"`, ``), "tool:hashchain"},
		"checkpoints":        {deployment(`{"action": "checkpoint.propose", "resource": "none"}`, `{"action": "result.report", "resource": "none"}`), "checkpoint.propose"},
		"its own checkpoint": {deployment(`"resource": "input:**"`, `"resource": "input:seed/**"`), "input:checkpoint/**"},
	} {
		t.Run(name, func(t *testing.T) {
			c := newChained(t)
			dist := testdist.Variant(t, s.dist, t.TempDir(), test.edit)
			c.killed()
			c.tickUntil(2, "--dist", dist)
			all := c.attempts()
			first, second := all[0], all[1]
			if test.why == "" {
				c.wentOn(all)
				if was, is := c.layers(first.ID), c.layers(second.ID); was["deployment"] == is["deployment"] || was["constitution"] != is["constitution"] {
					t.Errorf("the first was decided under %v, the second under %v", was, is)
				}
				return
			}
			if second.Result == nil || second.Result.Conclusion != "failed" || !strings.Contains(second.Denied, test.why) {
				t.Errorf("the second is %+v (%q), want it refused for %s", second, second.Denied, test.why)
			}
			if first.Denied != "" || first.Result == nil || first.Result.Conclusion != "lost" {
				t.Errorf("the first, which ran and was lost, is %+v (%q)", first, first.Denied)
			}
			if second.Environment != "" || second.has("attempt.leased") || len(second.Outputs) > 0 {
				t.Errorf("the second began: %+v", second)
			}
			if first.Result.Conclusion != "lost" || len(first.Checkpoints) == 0 {
				t.Errorf("the first is %+v", first)
			}
		})
	}
}

// layers are the digests of the policy layers that an attempt was decided under.
func (c *chained) layers(attempt string) map[string]string {
	c.t.Helper()
	var e struct {
		Decision struct {
			Policies []struct{ Layer, Digest string }
		}
	}
	c.json(&e, "explain", attempt)
	found := map[string]string{}
	for _, l := range e.Decision.Policies {
		found[l.Layer] = l.Digest
	}
	return found
}
