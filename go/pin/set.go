package pin

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/writ-runtime/writ/go/canonical"
	"github.com/writ-runtime/writ/go/reason"
)

// Set is what a distribution directory pins. It is safe for use by several goroutines.
type Set struct {
	dir     string
	entries []Entry
	digests []LockDigest

	// mu guards sealed.
	mu     sync.Mutex
	sealed map[canonical.Digest]*Sealed
}

// LockDigest names a lock file by its bytes.
type LockDigest struct {
	File   string           `json:"file"`
	Digest canonical.Digest `json:"digest"`
}

// Open reads the lock files of the directory. A lock file that is absent pins nothing; at least one has to be
// there. It fails with pin.unreadable or pin.malformed.
func Open(dir string) (*Set, error) {
	s := &Set{dir: dir, sealed: map[canonical.Digest]*Sealed{}}
	for _, f := range []struct{ name, kind string }{{AdaptersFile, AdaptersKind}, {ToolsFile, ToolsKind}, {PoliciesFile, PoliciesKind}} {
		where := filepath.Join(dir, f.name)
		data, err := readLock(where)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, unreadable(where, err)
		}
		l, err := parseLock(data, f.kind, where)
		if err != nil {
			return nil, err
		}
		s.entries = append(s.entries, l.Entries...)
		s.digests = append(s.digests, LockDigest{File: f.name, Digest: canonical.Sum(data)})
	}
	if len(s.digests) == 0 {
		return nil, reason.New(reason.PinUnreadable, "no lock file is there", dir, "point to the directory that the build wrote, which holds "+ToolsFile)
	}
	slices.SortStableFunc(s.entries, func(a, b Entry) int {
		return strings.Compare(a.Kind+"\x00"+a.Name+"\x00"+a.Platform, b.Kind+"\x00"+b.Name+"\x00"+b.Platform)
	})
	return s, nil
}

// Dir returns the directory that the set was opened from.
func (s *Set) Dir() string { return s.dir }

// Entries returns every pinned file, by kind, name and platform.
func (s *Set) Entries() []Entry { return slices.Clone(s.entries) }

// Digest returns the digest of one lock file, for example ToolsFile; ok is false when it is absent.
func (s *Set) Digest(file string) (digest canonical.Digest, ok bool) {
	for _, d := range s.digests {
		if d.File == file {
			return d.Digest, true
		}
	}
	return "", false
}

// Digests returns the digest of every lock file that is there.
func (s *Set) Digests() []LockDigest { return slices.Clone(s.digests) }

// Entry returns the pinned file of that kind and name that this host can use: built for its platform, or for
// none in particular (WebAssembly, policies). It fails with pin.not_locked, which names what is there.
func (s *Set) Entry(kind, name string) (Entry, error) {
	host := runtime.GOOS + "/" + runtime.GOARCH
	what := fmt.Sprintf("no %s named %q is pinned", kind, name)
	var there []string
	for _, e := range s.entries {
		if e.Kind != kind {
			continue
		}
		usable := e.Platform == host || e.Platform == "wasip1/wasm" || e.Platform == "any"
		if e.Name == name && usable {
			return e, nil
		}
		if e.Name == name {
			what = fmt.Sprintf("no %s named %q is pinned for %s", kind, name, host)
		}
		there = append(there, e.Name+" ("+e.Platform+")")
	}
	remedy := "nothing of that kind is pinned there"
	if len(there) > 0 {
		remedy = "pinned are " + strings.Join(there, ", ")
	}
	return Entry{}, reason.New(reason.PinNotLocked, what, s.dir, remedy)
}

// Close releases the sealed memory that the set holds. Processes that were started from it go on.
func (s *Set) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	var errs []error
	for d, x := range s.sealed {
		errs = append(errs, x.file.Close())
		delete(s.sealed, d)
	}
	return errors.Join(errs...)
}

func readLock(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxLockSize+1))
	if err != nil {
		return nil, err
	}
	if len(data) > maxLockSize {
		return nil, fmt.Errorf("larger than %d bytes", maxLockSize)
	}
	return data, nil
}

func unreadable(where string, err error) error {
	return reason.New(reason.PinUnreadable, "a pinned file cannot be read", where, rebuild).Because(err)
}

func quote(s string) string { return strconv.Quote(s) }
