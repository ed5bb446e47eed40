package lockfile

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/gowebpki/jcs"
)

// WriteDir makes the release set in dir, which must be empty or not exist: a file that an
// older set left behind would be in no lock.
func WriteDir(dir string, sources []Source) error {
	if left, err := os.ReadDir(dir); err == nil && len(left) > 0 {
		return fmt.Errorf("write release set: %s is not empty", dir)
	}
	for _, l := range Locks() {
		b, err := Encode(l, sources)
		if err != nil {
			return err
		}
		if err := write(filepath.Join(dir, l.Name+".lock.json"), b, 0o644); err != nil {
			return err
		}
	}
	for _, s := range sources {
		b, err := os.ReadFile(s.File)
		if err != nil {
			return fmt.Errorf("copy %s %s: %w", s.Kind, s.Name, err)
		}
		mode := os.FileMode(0o644)
		if s.Kind == Adapter || s.Kind == Worker {
			mode = 0o755
		}
		if err := write(filepath.Join(dir, filepath.FromSlash(s.Path)), b, mode); err != nil {
			return err
		}
	}
	return nil
}

func write(name string, b []byte, mode os.FileMode) error {
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		return fmt.Errorf("make folder: %w", err)
	}
	if err := os.WriteFile(name, b, mode); err != nil {
		return fmt.Errorf("write release file: %w", err)
	}
	return nil
}

// Encode measures those sources that belong into the lock and returns the lock file:
// canonical JSON (RFC 8785), entries sorted by name, a newline at the end.
func Encode(l Lock, sources []Source) ([]byte, error) {
	entries := []Entry{}
	for _, s := range sources {
		if !slices.Contains(l.Kinds, s.Kind) {
			continue
		}
		e, err := measure(s)
		if err != nil {
			return nil, err
		}
		entries = append(entries, e)
	}
	slices.SortFunc(entries, func(a, b Entry) int { return strings.Compare(a.Name, b.Name) })
	for i := 1; i < len(entries); i++ {
		if entries[i-1].Name == entries[i].Name {
			return nil, fmt.Errorf("%s.lock.json: two entries are named %s", l.Name, entries[i].Name)
		}
	}
	b, err := json.Marshal(struct {
		Entries []Entry `json:"entries"`
		Kind    string  `json:"kind"`
	}{entries, "writ.lock." + l.Name + ".v1"})
	if err != nil {
		return nil, fmt.Errorf("encode %s.lock.json: %w", l.Name, err)
	}
	if b, err = jcs.Transform(b); err != nil {
		return nil, fmt.Errorf("encode %s.lock.json: %w", l.Name, err)
	}
	return append(b, '\n'), nil
}

func measure(s Source) (Entry, error) {
	if err := s.check(); err != nil {
		return Entry{}, err
	}
	b, err := os.ReadFile(s.File)
	if err != nil {
		return Entry{}, fmt.Errorf("measure %s %s: %w", s.Kind, s.Name, err)
	}
	sum := sha256.Sum256(b)
	e := Entry{
		Kind:     s.Kind,
		Name:     s.Name,
		Path:     s.Path,
		Platform: s.Platform,
		SHA256:   "sha256:" + hex.EncodeToString(sum[:]),
		Size:     int64(len(b)),
		Version:  s.Version,
	}
	if s.Manifest == "" {
		return e, nil
	}
	m, err := os.ReadFile(s.Manifest)
	if err != nil {
		return Entry{}, fmt.Errorf("manifest of %s %s: %w", s.Kind, s.Name, err)
	}
	if m = bytes.TrimSpace(m); !json.Valid(m) || m[0] != '{' {
		return Entry{}, fmt.Errorf("manifest of %s %s: %s is not a JSON object", s.Kind, s.Name, s.Manifest)
	}
	e.Manifest = m
	return e, nil
}
