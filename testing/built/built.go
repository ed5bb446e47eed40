// Package built gives tests the programs that they start: under Bazel those that Bazel built, elsewhere ones that
// the go command builds once a process. It also says where the source tree is. What cannot be had fails the test;
// nothing is skipped.
package built

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// Builder builds programs into a directory of its own, each once. The zero value is not usable; see New.
type Builder struct {
	dir string

	// mu guards paths.
	mu    sync.Mutex
	paths map[string]string
}

// New returns a builder over a new temporary directory, and a function that removes it.
func New() (*Builder, func(), error) {
	dir, err := os.MkdirTemp("", "writ-built-")
	if err != nil {
		return nil, nil, fmt.Errorf("make directory for built programs: %w", err)
	}
	return &Builder{dir: dir, paths: map[string]string{}}, func() { _ = os.RemoveAll(dir) }, nil
}

// Run builds what tests ask for during m.Run, and removes it afterwards: the body of a TestMain. set receives the
// builder before the tests run. It returns the exit status.
func Run(m *testing.M, set func(*Builder)) int {
	b, remove, err := New()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer remove()
	set(b)
	return m.Run()
}

// Path returns the absolute path of a program. Where the environment variable env is set, it holds the path of a
// runfile below the workspace's runfiles (Bazel's rootpath); otherwise the go command builds goPackage, with goEnv
// (for example "GOOS=wasip1") added to its environment.
func (b *Builder) Path(t testing.TB, env, goPackage string, goEnv ...string) string {
	t.Helper()
	if rootpath := os.Getenv(env); rootpath != "" {
		return runfile(t, rootpath)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	key := strings.Join(append([]string{goPackage}, goEnv...), "\x00")
	if p, ok := b.paths[key]; ok {
		return p
	}
	out := filepath.Join(b.dir, fmt.Sprintf("%d-%s", len(b.paths), filepath.Base(goPackage)))
	cmd := exec.Command("go", "build", "-trimpath", "-o", out, goPackage)
	cmd.Env = append(os.Environ(), goEnv...)
	if text, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("build %s: %v\n%s", goPackage, err, text)
	}
	b.paths[key] = out
	return out
}

// runfile resolves a rootpath below the runfiles of the test.
func runfile(t testing.TB, rootpath string) string {
	t.Helper()
	if filepath.IsAbs(rootpath) {
		return rootpath
	}
	abs, err := filepath.Abs(filepath.Join(Root(t), filepath.FromSlash(rootpath)))
	if err == nil {
		_, err = os.Stat(abs)
	}
	if err != nil {
		t.Fatalf("runfile %s: %v", rootpath, err)
	}
	return abs
}

// Path is Builder.Path for a test that needs one program once: it is built for that test alone.
func Path(t testing.TB, env, goPackage string, goEnv ...string) string {
	t.Helper()
	b := &Builder{dir: t.TempDir(), paths: map[string]string{}}
	return b.Path(t, env, goPackage, goEnv...)
}
