package crash_test

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// mostPasses is more than what a recovery, and the small run after it, pass together.
const mostPasses = 140

// TestKilledAtEveryPoint kills a run at a point of each kind, kills the runs that recover
// from it at points that are drawn, lets one recover, and holds the whole history against
// what every life was seen to do.
func TestKilledAtEveryPoint(t *testing.T) {
	s := ready(t)
	groups := kinds(s.recorded)
	demandPoints(t, groups)
	total := 0
	t.Cleanup(func() { t.Logf("%d lives, %d of them killed", lived.Load(), killed.Load()) })
	for _, kind := range slices.Sorted(maps.Keys(groups)) {
		points := groups[kind]
		total += len(points)
		t.Run(strings.ReplaceAll(kind, ",", ";"), func(t *testing.T) {
			t.Parallel()
			if *seeds > fewSeeds {
				for _, p := range points {
					crash(t, s, p.scenario, plug{at: p.name + "#1"}, nil)
				}
			}
			rapid.Check(t, func(t *rapid.T) {
				p := rapid.SampledFrom(points).Draw(t, "point")
				first := plug{at: fmt.Sprintf("%s#%d", p.name, rapid.IntRange(1, p.passes).Draw(t, "pass"))}
				switch rapid.IntRange(0, 8).Draw(t, "how") {
				case 0, 1, 2: // Inside what follows the point.
					first.at += "+" + time.Duration(rapid.Int64Range(1, int64(p.took/2)).Draw(t, "later")).String()
				case 3: // Anywhere, before the first point too.
					first = plug{after: time.Duration(rapid.Int64Range(1, int64(p.took)).Draw(t, "after"))}
				}
				var recovering []plug
				for _, n := range rapid.SliceOfN(rapid.IntRange(1, mostPasses), 0, 2).Draw(t, "while recovering") {
					recovering = append(recovering, plug{at: fmt.Sprintf("*#%d", n)})
				}
				crash(t, s, p.scenario, first, recovering)
			})
		})
	}
	t.Logf("%d points of %d kinds in %d scenarios", total, len(groups), len(s.recorded))
}

// crash goes through one chain of lives, in a world of its own.
func crash(t rapid.TB, s *suite, sc scenario, first plug, recovering []plug) {
	t.Helper()
	w := newWorld(t, s)
	w.first(t, sc)
	w.observe(t, w.live(t, sc, first))
	for _, p := range recovering {
		w.observe(t, w.live(t, again, p))
	}
	last := w.live(t, again, undisturbed)
	if last.killed || last.status != 0 {
		t.Errorf("%v after %v: exit status %d\n%s%s", last, w.lives, last.status, last.out, last.errs)
	}
	w.observe(t, last)
	w.settled(t)
	if t.Failed() {
		t.Fatalf("after %v, in %s", w.lives, w.dir)
	}
	_ = os.RemoveAll(w.dir)
}

// demandPoints fails when a point that a crash must be tried at has gone: all five of each
// operation that this release performs, those of every turn, and of reducing.
func demandPoints(t *testing.T, groups map[string][]point) {
	t.Helper()
	has := func(kind string, where ...string) {
		t.Helper()
		for _, w := range where {
			if !slices.ContainsFunc(groups[kind], func(p point) bool { return p.name == w+"/"+kind }) {
				t.Errorf("no scenario passes %s/%s", w, kind)
			}
		}
	}
	for _, kind := range []string{"provision", "materialize", "prepare", "start", "launch", "checkpoint", "freeze_outputs", "collect", "cancel", "cleanup", "reset", "destroy", "branch", "review_packet"} {
		has(kind, "run.before", "run.after", "run.settled")
		for _, verb := range []string{"begin", "settle"} {
			var turns []string
			for what := range groups {
				for part := range strings.SplitSeq(what, ",") {
					if list, ok := strings.CutPrefix(part, verb+"="); ok && slices.Contains(strings.Split(list, "+"), kind) {
						turns = append(turns, what)
					}
				}
			}
			if len(turns) == 0 {
				t.Errorf("no scenario commits a turn with %s=%s", verb, kind)
			}
			for _, what := range turns {
				has(what, "commit.before", "store.inserted", "commit.after")
			}
		}
	}
}
