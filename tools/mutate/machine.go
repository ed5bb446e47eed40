package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"
)

// Machine runs trials over a tree.
type Machine struct {
	// Root is the root of the tree, where go.mod stands.
	Root   string
	Bounds Bounds
	// Jobs is how many trials run beside each other, at least 1.
	Jobs int
	// Progress gets a line for each trial that ends. Nil is none.
	Progress io.Writer
}

// Run carries the trials out, and returns a verdict for each in the same order. First it runs
// their tests with every guard in place: a test that is red anyway shows nothing. The error
// means that no trial could be carried out.
func (m Machine) Run(ctx context.Context, trials []Trial) ([]Verdict, error) {
	root, err := filepath.Abs(m.Root)
	if err != nil {
		return nil, err
	}
	m.Root = root
	if _, err := os.Stat(filepath.Join(root, "go.mod")); err != nil {
		return nil, fmt.Errorf("%s is not the root of the tree: %w", root, err)
	}
	unsound, err := m.baseline(ctx, trials)
	if err != nil {
		return nil, err
	}
	verdicts := make([]Verdict, len(trials))
	var mu sync.Mutex // guards Progress
	m.each(len(trials), func(i int) {
		t, begun := trials[i], time.Now()
		v := Verdict{Trial: t}
		if why := unsound(t); why != "" {
			v.Ending, v.Why = NotSound, why
		} else {
			v.Ending, v.Why = m.try(ctx, t)
		}
		v.Took = time.Since(begun)
		verdicts[i] = v
		mu.Lock()
		defer mu.Unlock()
		m.say("%s: %s", t.Name, v.Ending)
	})
	return verdicts, ctx.Err()
}

// each calls do with 0 to n-1, Jobs of them beside each other, and waits for all.
func (m Machine) each(n int, do func(i int)) {
	next := make(chan int)
	var wg sync.WaitGroup
	for range max(1, m.Jobs) {
		wg.Go(func() {
			for i := range next {
				do(i)
			}
		})
	}
	for i := range n {
		next <- i
	}
	close(next)
	wg.Wait()
}

func (m Machine) say(format string, args ...any) {
	if m.Progress != nil {
		fmt.Fprintf(m.Progress, format+"\n", args...)
	}
}

// baseline runs the tests of all trials on the tree as it is. What it returns says why a
// trial could show nothing, empty for one that can.
func (m Machine) baseline(ctx context.Context, trials []Trial) (func(Trial) string, error) {
	all := map[string][]proof{}
	for _, t := range trials {
		by, err := t.proofs()
		if err != nil {
			return nil, err
		}
		for folder, proofs := range by {
			all[folder] = append(all[folder], proofs...)
		}
	}
	folders := make([]string, 0, len(all))
	for folder := range all {
		folders = append(folders, folder)
	}
	slices.Sort(folders)
	reports := map[string]*report{}
	var mu sync.Mutex // guards reports and Progress
	m.each(len(folders), func(i int) {
		r := m.test(ctx, "", folders[i], pattern(all[folders[i]]))
		mu.Lock()
		defer mu.Unlock()
		reports[folders[i]] = r
		m.say("before: //%s: %s", folders[i], r.summary())
	})
	return func(t Trial) string {
		by, err := t.proofs()
		if err != nil {
			return err.Error()
		}
		for folder, proofs := range by {
			r := reports[folder]
			for _, p := range proofs {
				if r.ended[p.Test] != "pass" {
					return fmt.Sprintf("//%s %s does not pass with the guard in place: %s", folder, p.Test, r.summary())
				}
			}
		}
		return ""
	}, ctx.Err()
}

// try disables a guard, and looks whether its tests notice.
func (m Machine) try(ctx context.Context, t Trial) (Ending, string) {
	file := filepath.Join(m.Root, filepath.FromSlash(t.File))
	text, err := os.ReadFile(file)
	if err != nil {
		return Unfound, err.Error()
	}
	changed, err := t.Disable(string(text))
	if err != nil {
		return Unfound, err.Error()
	}
	scratch, err := os.MkdirTemp("", "writ-mutate-")
	if err != nil {
		return NeverRan, err.Error()
	}
	defer os.RemoveAll(scratch)
	overlay, err := lay(scratch, file, changed)
	if err != nil {
		return NeverRan, err.Error()
	}
	if filepath.Ext(file) == ".go" {
		// A program that a test builds for itself fails that test when it does not compile,
		// which is no red that shows anything.
		if out, err := m.command(ctx, overlay, "build", "-o", os.DevNull, "./"+filepath.ToSlash(filepath.Dir(t.File))); err != nil {
			return Unbuilt, string(out)
		}
	}
	by, err := t.proofs()
	if err != nil {
		return NeverRan, err.Error()
	}
	for folder, proofs := range by {
		r := m.test(ctx, overlay, folder, pattern(proofs))
		for _, p := range proofs {
			if ending, why := r.judge(p.Test); ending != Red {
				return ending, fmt.Sprintf("//%s %s: %s", folder, p.Test, why)
			}
		}
	}
	return Red, ""
}

// lay writes the changed text of a file into a folder, and the overlay by which the go command takes it in
// place of the file's own.
func lay(scratch, file, changed string) (overlay string, err error) {
	in := filepath.Join(scratch, "changed"+filepath.Ext(file))
	raw, err := json.Marshal(map[string]map[string]string{"Replace": {file: in}})
	if err != nil {
		return "", err
	}
	overlay = filepath.Join(scratch, "overlay.json")
	return overlay, errors.Join(os.WriteFile(in, []byte(changed), 0o600), os.WriteFile(overlay, raw, 0o600))
}

// command runs the go command on the tree, within the bounds, and returns what it said. Each
// go command below it takes the overlay too.
func (m Machine) command(ctx context.Context, overlay string, args ...string) ([]byte, error) {
	// Sockets are made below it, whose paths the kernel keeps short: no folder within a folder.
	tmp, err := os.MkdirTemp("", "m")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(tmp)
	// A test that becomes somebody else runs its programs from there.
	if err := os.Chmod(tmp, 0o755); err != nil {
		return nil, err
	}
	cmd := exec.Command("go", args...)
	cmd.Dir = m.Root
	cmd.Env = environment(os.Environ(), tmp, overlay)
	return m.Bounds.run(ctx, cmd, tmp)
}

// environment is ours, with temporary files in a folder, nothing fetched, and the overlay.
func environment(ours []string, tmp, overlay string) []string {
	var env []string
	flags := ""
	for _, v := range ours {
		name, value, _ := strings.Cut(v, "=")
		switch {
		case name == "GOFLAGS":
			flags = value + " "
		case strings.HasPrefix(name, "WRIT_"): // What tests would take for programs of theirs.
		default:
			env = append(env, v)
		}
	}
	if overlay != "" {
		flags += "'-overlay=" + overlay + "'"
	}
	return append(env, "TMPDIR="+tmp, "GOTMPDIR="+tmp, "GOPROXY=off", "GOTOOLCHAIN=local", "GOFLAGS="+strings.TrimSpace(flags))
}
