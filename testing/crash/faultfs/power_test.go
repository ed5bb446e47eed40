package faultfs_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/writ-runtime/writ/go/journal"
	"github.com/writ-runtime/writ/go/journal/sqlite"
	"github.com/writ-runtime/writ/testing/crash/faultfs"
)

// TestPowerLoss runs a writer once, and cuts the power after each call that changed a file.
// Whatever the disk then has of what was not synced: each batch that was acknowledged is
// there, everything verifies, and the next writer goes on.
func TestPowerLoss(t *testing.T) {
	base := t.TempDir()
	var tr trace
	runChild(t, base, &tr)
	said := words(tr.ops)
	if last := said[len(said)-1]; last[0] != "stored" || len(said) != lives*(perLife+1)+16 {
		t.Fatalf("the writer said %v", said)
	}
	t.Logf("%d calls", len(tr.ops))
	if *seeds > fewSeeds {
		for cut := range len(tr.ops) + 1 {
			for _, loss := range []faultfs.Loss{faultfs.LoseNothing, faultfs.LoseEverything} {
				cutPower(t, tr.ops[:cut], loss, 0)
			}
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		cut := rapid.IntRange(0, len(tr.ops)).Draw(t, "cut")
		loss := rapid.SampledFrom([]faultfs.Loss{faultfs.LoseSome, faultfs.LoseSome, faultfs.LoseEverything}).Draw(t, "loss")
		cutPower(t, tr.ops[:cut], loss, rapid.Uint64().Draw(t, "seed"))
	})
}

// cutPower makes what is left of a folder after the calls, and holds it against what the
// process had said.
func cutPower(t fail, ops []faultfs.Op, loss faultfs.Loss, seed uint64) {
	t.Helper()
	disk := faultfs.NewDisk(loss, seed)
	for _, op := range ops {
		if op.Kind != faultfs.Say {
			disk.Apply(op)
		}
	}
	base, err := os.MkdirTemp("", "writ-cut-")
	if err != nil {
		t.Fatalf("%v", err)
	}
	defer os.RemoveAll(base)
	state := filepath.Join(base, "state")
	for path, raw := range disk.Cut() {
		name := filepath.Join(base, path)
		err := os.MkdirAll(filepath.Dir(name), 0o700)
		if strings.HasSuffix(path, "-shm") {
			// It is shared memory that happens to have a name: anything may be in it.
			raw = []byte(strings.Repeat("\xa5", 32<<10))
		}
		if err == nil {
			err = os.WriteFile(name, raw, 0o600)
		}
		if err != nil {
			t.Fatalf("%v", err)
		}
	}
	holds(t, state, words(ops), fmt.Sprintf("power cut after call %d, losing %v", len(ops), loss))
}

// holds opens what is left of a journal and demands all that was acknowledged of it, and
// that work can go on.
func holds(t fail, state string, said [][]string, when string) {
	t.Helper()
	ctx := context.Background()
	s, err := sqlite.Open(ctx, state, sqlite.Options{Write: true, Activity: "test"})
	if err != nil {
		t.Fatalf("%s: the next writer: %v", when, err)
	}
	defer s.Close()
	if _, err := s.Verify(ctx, func(d journal.Damage) { t.Errorf("%s: damage: %+v", when, d) }); err != nil {
		t.Fatalf("%s: verify: %v", when, err)
	}
	for _, line := range said {
		switch line[0] {
		case "open":
			if line[1] >= strconv.FormatUint(s.Epoch(), 10) {
				t.Errorf("%s: a writer had epoch %s, the next has %d", when, line[1], s.Epoch())
			}
		case "stored":
			i, err := strconv.Atoi(line[1])
			if err != nil {
				t.Fatalf("%v", err)
			}
			e, err := s.Lookup(ctx, batch(i, 0).Identity)
			if err != nil || e == nil || fmt.Sprint(e.Sequence) != line[2] || string(e.Chain) != line[3] {
				t.Fatalf("%s: batch %d was acknowledged as %v, and is %v, %v", when, i, line[2:], e, err)
			}
		}
	}
	// Repeating everything is safe, whatever of it was stored.
	for _, line := range said {
		if line[0] != "stored" && line[0] != "failed" {
			continue
		}
		i, err := strconv.Atoi(line[1])
		if err != nil {
			t.Fatalf("%v", err)
		}
		results, err := s.Append(ctx, batch(i, s.Epoch()))
		if err == nil {
			err = results[0].Err
		}
		if err != nil || line[0] == "stored" && !results[0].Replayed {
			t.Fatalf("%s: batch %d repeated: %+v, %v", when, i, results, err)
		}
	}
	if err := s.Close(); err != nil {
		t.Errorf("%s: close: %v", when, err)
	}
}
