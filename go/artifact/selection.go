package artifact

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf16"

	"golang.org/x/text/cases"
	"golang.org/x/text/unicode/norm"

	"github.com/writ-runtime/writ/go/protocol"
	"github.com/writ-runtime/writ/go/reason"
)

// maxListed bounds the entries of a workspace, declared or not.
const maxListed = 2 * protocol.MaxOutputs

// selection sorts the entries of a workspace into accepted, omitted and rejected, by
// what was listed alone: no byte has been read.
type selection struct {
	policy   protocol.OutputPolicy
	listed   []Entry
	accepted []Entry
	omitted  []protocol.Exclusion
	rejected []protocol.Exclusion
}

// judge fills the three lists, each in the order of paths. The same entries in another
// order give the same lists.
func (s *selection) judge() {
	slices.SortStableFunc(s.listed, compareEntries)
	rivals := s.rivals()
	types := map[string]EntryType{}
	for _, e := range s.listed {
		types[e.Path] = e.Type
	}
	for i, e := range s.listed {
		if i > 0 && s.listed[i-1].Path == e.Path || i+1 < len(s.listed) && s.listed[i+1].Path == e.Path {
			s.reject(e, reason.FreezeCollision, "the path is listed twice")
			continue
		}
		if refusal := protocol.CheckPath(e.Path); refusal != nil {
			s.reject(e, reason.FreezeBadName, refusal.What)
			continue
		}
		declared := s.concerns(e.Path)
		switch rival := rivals.of(e.Path); {
		case rival != "" && (declared || s.concerns(rival)):
			s.reject(e, reason.FreezeCollision, "another name differs from it only by case or normalization: "+protocol.EscapePath(rival))
		case !declared && e.Type == Dir && s.leads(e.Path):
			// A folder on the way to declared paths is implied by them.
		case !declared && s.leads(e.Path):
			s.reject(e, reason.FreezeUnexpectedType, fmt.Sprintf("a %s stands where a folder of declared outputs must be", e.Type))
		case !declared:
			s.omitted = append(s.omitted, exclusion(e, reason.FreezeUndeclared, fmt.Sprintf("an undeclared %s", e.Type)))
		case e.Type == Dir:
			if s.exact(e.Path) {
				s.reject(e, reason.FreezeUnexpectedType, "a folder stands where a file was declared")
			}
		case s.folder(e.Path):
			s.reject(e, reason.FreezeUnexpectedType, fmt.Sprintf("a %s stands where a folder was declared", e.Type))
		default:
			s.consider(e, types)
		}
	}
	s.bound()
	s.missing()
	slices.SortStableFunc(s.rejected, func(a, b protocol.Exclusion) int { return compareUTF16(a.Path, b.Path) })
}

// consider accepts a declared entry that is one plain file.
func (s *selection) consider(e Entry, types map[string]EntryType) {
	if e.Type != File {
		s.reject(e, reason.FreezeUnexpectedType, fmt.Sprintf("the output is a %s, not a file", e.Type))
		return
	}
	for dir := parent(e.Path); dir != ""; dir = parent(dir) {
		if t, listed := types[dir]; listed && t != Dir {
			s.reject(e, reason.FreezeUnexpectedType, fmt.Sprintf("it lies beneath a %s: %s", t, protocol.EscapePath(dir)))
			return
		}
	}
	switch {
	case e.Links != 1:
		s.reject(e, reason.FreezeHardlink, fmt.Sprintf("the file has %d names", e.Links))
	case e.Size < 0 || e.Size > s.policy.MaxBytes:
		s.reject(e, reason.FreezeTooLarge, fmt.Sprintf("the file has %d bytes, all outputs may have %d", e.Size, s.policy.MaxBytes))
	default:
		s.accepted = append(s.accepted, e)
	}
}

// bound refuses all when there are too many files or bytes.
func (s *selection) bound() {
	var sum int64
	for _, e := range s.accepted {
		// Each size is at most MaxBytes, which is far from the end of int64.
		if sum += e.Size; sum > s.policy.MaxBytes {
			s.reject(e, reason.FreezeTooLarge, fmt.Sprintf("with it the outputs have more than %d bytes", s.policy.MaxBytes))
			break
		}
	}
	if n := int64(len(s.accepted)); n > s.policy.MaxCount {
		s.reject(s.accepted[s.policy.MaxCount], reason.FreezeTooMany, fmt.Sprintf("there are %d outputs, more than %d", n, s.policy.MaxCount))
	}
}

// missing refuses required outputs that are not there, but for those that are there
// and were rejected: that says more.
func (s *selection) missing() {
	for _, d := range s.policy.Paths {
		covers := func(path string) bool {
			dir, isDir := d.Dir()
			return path == d.Path || isDir && (path == dir || strings.HasPrefix(path, dir+"/"))
		}
		if d.Required &&
			!slices.ContainsFunc(s.accepted, func(e Entry) bool { return covers(e.Path) }) &&
			!slices.ContainsFunc(s.rejected, func(x protocol.Exclusion) bool { return covers(x.Path) }) {
			s.reject(Entry{Path: d.Path}, reason.FreezeMissing, "the required output was not produced")
		}
	}
}

// concerns reports whether an entry is declared: by its exact path, or beneath a
// declared folder, or as that folder.
func (s *selection) concerns(path string) bool {
	_, ok := s.policy.Match(path)
	return ok || s.folder(path)
}

// folder reports whether a path is a declared folder itself.
func (s *selection) folder(path string) bool {
	return slices.ContainsFunc(s.policy.Paths, func(d protocol.Declared) bool {
		dir, isDir := d.Dir()
		return isDir && dir == path
	})
}

// leads reports whether a path is a folder on the way to a declared one.
func (s *selection) leads(path string) bool {
	return slices.ContainsFunc(s.policy.Paths, func(d protocol.Declared) bool { return strings.HasPrefix(d.Path, path+"/") })
}

// exact reports whether a path is declared as that of a file.
func (s *selection) exact(path string) bool {
	d, ok := s.policy.Match(path)
	return ok && d.Path == path
}

func (s *selection) reject(e Entry, code reason.Code, detail string) {
	s.rejected = append(s.rejected, exclusion(e, code, detail))
}

func exclusion(e Entry, code reason.Code, detail string) protocol.Exclusion {
	return protocol.Exclusion{Path: protocol.EscapePath(e.Path), Code: code, Detail: detail}
}

// rivals knows every spelling of every name that some file system takes for one.
type rivals struct {
	fold  cases.Caser
	first map[string]string
	other map[string]string
}

// rivals looks at declared paths too, and at every folder on the way: a listed OUT/x
// is a rival of a declared out/x.
func (s *selection) rivals() rivals {
	r := rivals{fold: cases.Fold(), first: map[string]string{}, other: map[string]string{}}
	for _, d := range s.policy.Paths {
		path, _ := d.Dir()
		r.add(path)
	}
	for _, e := range s.listed {
		r.add(e.Path)
	}
	return r
}

func (r rivals) key(path string) string { return norm.NFC.String(r.fold.String(path)) }

func (r rivals) add(path string) {
	if protocol.CheckPath(path) != nil {
		return
	}
	for ; path != ""; path = parent(path) {
		key := r.key(path)
		switch before, known := r.first[key]; {
		case !known:
			r.first[key] = path
		case before != path:
			r.other[key] = path
		}
	}
}

// of returns another spelling of the path, or of a folder above it, or "".
func (r rivals) of(path string) string {
	for ; path != ""; path = parent(path) {
		key := r.key(path)
		if other, ok := r.other[key]; ok {
			if other == path {
				return r.first[key]
			}
			return other
		}
	}
	return ""
}

func parent(path string) string {
	i := strings.LastIndexByte(path, '/')
	return path[:max(i, 0)]
}

func compareEntries(a, b Entry) int {
	if c := compareUTF16(a.Path, b.Path); c != 0 {
		return c
	}
	return strings.Compare(a.Path, b.Path)
}

// compareUTF16 orders by UTF-16 code units, the order of the manifest. Bytes that are
// no UTF-8 compare as the replacement character.
func compareUTF16(a, b string) int {
	return slices.Compare(utf16.Encode([]rune(a)), utf16.Encode([]rune(b)))
}
