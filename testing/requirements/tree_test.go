package requirements_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/writ-runtime/writ/testing/built"
	"github.com/writ-runtime/writ/testing/requirements"
)

func committed(t *testing.T) requirements.Set {
	t.Helper()
	s, err := requirements.Committed()
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestCommittedSet(t *testing.T) {
	s := committed(t)
	for _, p := range s.Problems() {
		t.Error(p)
	}
	for id, r := range s.Requirements {
		if r.Open != "" && len(strings.Fields(r.Open)) < 2 {
			t.Errorf("%s: %q does not say why it is open", id, r.Open)
		}
	}
	for _, id := range s.IDs {
		if id.Summary == "" {
			t.Errorf("%s has no summary", id.ID)
		}
	}
}

// A test that was renamed, or a target, fails here at once and not in the check that
// follows all tests.
func TestNamedTestsExist(t *testing.T) {
	top := built.Source(t)
	steps, err := os.ReadFile(filepath.Join(top, ".ci", "run"))
	if err != nil {
		t.Fatal(err)
	}
	s := committed(t)
	for id, r := range s.Requirements {
		for _, text := range r.Tests {
			p, err := requirements.ParseProof(text)
			switch {
			case err != nil:
				t.Errorf("%s: %v", id, err)
			case p.Step != "":
				if !strings.Contains(string(steps), "\nstep '"+p.Step+"'") {
					t.Errorf("%s: .ci/run has no step '%s'", id, p.Step)
				}
			default:
				if err := exists(top, p); err != nil {
					t.Errorf("%s: %s: %v", id, text, err)
				}
			}
		}
	}
}

// Code that was rewritten takes the mutations along that name it: which of them have to
// be written anew is said here, and not by the run that takes long.
func TestMutationsFindTheirGuards(t *testing.T) {
	top := built.Source(t)
	for id, r := range committed(t).Requirements {
		for _, m := range r.Mutations {
			text, err := os.ReadFile(filepath.Join(top, filepath.FromSlash(m.File)))
			if err == nil {
				_, err = m.Disable(string(text))
			}
			if err != nil {
				t.Errorf("%s/%s: %v", id, m.ID, err)
			}
			for _, red := range m.Red {
				if p, err := requirements.ParseProof(red); err == nil {
					if err := exists(top, p); err != nil {
						t.Errorf("%s/%s: %s: %v", id, m.ID, red, err)
					}
				}
			}
		}
	}
}

// exists looks for the proof's target in its BUILD file and for its function among the
// tests beside it.
func exists(top string, p requirements.Proof) error {
	folder, target := p.Package()
	dir := filepath.Join(top, filepath.FromSlash(folder))
	build, err := os.ReadFile(filepath.Join(dir, "BUILD.bazel"))
	if err != nil {
		return err
	}
	if !strings.Contains(string(build), fmt.Sprintf("name = %q", target)) {
		return fmt.Errorf("//%s has no target %s", folder, target)
	}
	if p.Test == "" {
		return nil
	}
	files, err := filepath.Glob(filepath.Join(dir, "*_test.go"))
	if err != nil {
		return err
	}
	for _, file := range files {
		f, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		for _, d := range f.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok && fn.Recv == nil && fn.Name.Name == p.Function() {
				return nil
			}
		}
	}
	return fmt.Errorf("no test of //%s is called %s", folder, p.Function())
}
