package protocol

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"

	"github.com/writ-runtime/writ/go/canonical"
	"github.com/writ-runtime/writ/go/reason"
)

// ArtifactManifestKind is the registered kind of an ArtifactManifest.
const ArtifactManifestKind = "writ.artifact_manifest.v1"

// PathPolicyV1 is the version of the path policy that CheckPath carries out: what a
// name of an output may be, and that a link is never followed nor kept.
const PathPolicyV1 = "writ.path_policy.v1"

// Bounds of path policy v1, and of every output policy.
const (
	// MaxPathBytes and MaxSegmentBytes bound a path and one name in it, in bytes.
	MaxPathBytes    = 1024
	MaxSegmentBytes = 255
	// MaxPathDepth is how many names a path may have.
	MaxPathDepth = 32
	// MaxOutputs is the largest MaxCount of an output policy. It keeps a manifest
	// small enough to be read and signed.
	MaxOutputs = 4096
)

// Declared is one output, or one folder of outputs, that may leave the workspace.
type Declared struct {
	// Path is relative to the workspace: an exact path, or a folder and "/**" for
	// every file beneath it at any depth. No other wildcard exists.
	Path      string `json:"path"`
	MediaType string `json:"media_type"`
	// Required says that the attempt fails without it; a folder needs one file.
	Required bool `json:"required"`
}

// Dir returns the folder of a declaration that ends in "/**"; ok is false for an
// exact path.
func (d Declared) Dir() (dir string, ok bool) { return strings.CutSuffix(d.Path, "/**") }

// OutputPolicy says what is collected. What it does not name never leaves.
type OutputPolicy struct {
	Paths []Declared `json:"paths"`
	// MaxCount and MaxBytes bound the number of files and the sum of their sizes.
	MaxCount          int64  `json:"max_count"`
	MaxBytes          int64  `json:"max_bytes"`
	PathPolicyVersion string `json:"path_policy"`
}

// Check refuses, with freeze.bad_policy, a policy that cannot be enforced as written.
func (p OutputPolicy) Check() error {
	bad := func(what, where string) error {
		return reason.New(reason.FreezeBadPolicy, what, where,
			"declare relative paths such as report.json, or a folder as out/**, each once, and bounds above 0")
	}
	switch {
	case len(p.Paths) > MaxOutputs:
		return bad(fmt.Sprintf("%d paths are declared, more than %d", len(p.Paths), MaxOutputs), "paths")
	case p.PathPolicyVersion != PathPolicyV1:
		return bad(fmt.Sprintf("path policy %q is not known", p.PathPolicyVersion), "path_policy")
	case p.MaxCount < 0 || p.MaxCount > MaxOutputs:
		return bad(fmt.Sprintf("%d files lie outside 0 to %d", p.MaxCount, MaxOutputs), "max_count")
	case p.MaxBytes < 0 || p.MaxBytes > canonical.MaxInteger:
		return bad(fmt.Sprintf("%d bytes cannot be counted", p.MaxBytes), "max_bytes")
	}
	seen := make(map[string]bool, len(p.Paths))
	for i, d := range p.Paths {
		where := "paths/" + strconv.Itoa(i)
		path, _ := d.Dir()
		switch err := CheckPath(path); {
		case err != nil:
			return bad(err.What, where)
		case strings.Contains(path, "*"):
			return bad("a wildcard stands elsewhere than as a trailing /**", where)
		case seen[strings.ToLower(d.Path)]:
			return bad("the path is declared twice, but for the case of letters", where)
		case !validMediaType(d.MediaType):
			return bad(fmt.Sprintf("%s is not a media type", EscapePath(d.MediaType)), where)
		}
		seen[strings.ToLower(d.Path)] = true
	}
	for i, d := range p.Paths {
		for _, other := range p.Paths {
			if strings.HasPrefix(other.Path, d.Path+"/") {
				return bad(d.Path+" is declared as a file and as a folder", "paths/"+strconv.Itoa(i))
			}
		}
	}
	return nil
}

// Match returns the declaration that covers a path: the exact one, else the deepest
// folder. The path must have passed CheckPath.
func (p OutputPolicy) Match(path string) (found Declared, ok bool) {
	depth := -1
	for _, d := range p.Paths {
		dir, isDir := d.Dir()
		switch {
		case !isDir && d.Path == path:
			return d, true
		case isDir && len(dir) > depth && strings.HasPrefix(path, dir+"/"):
			found, ok, depth = d, true, len(dir)
		}
	}
	return found, ok
}

// ArtifactManifest is what was frozen of one workspace: every accepted file, sorted by
// the UTF-16 code units of its path, and every path that was left out or refused.
type ArtifactManifest struct {
	Kind string `json:"kind"`
	// Attestation is the digest of the workspace attestation taken before freezing.
	Attestation canonical.Digest `json:"attestation"`
	PathPolicy  string           `json:"path_policy"`
	Bytes       int64            `json:"bytes"`
	Entries     []ArtifactEntry  `json:"entries"`
	// Omitted were not declared; Rejected were refused, and then Entries is empty.
	Omitted  []Exclusion `json:"omitted"`
	Rejected []Exclusion `json:"rejected"`
}

// ArtifactEntry is one frozen file. Type is always "file": folders are implied by
// paths, and nothing else is ever accepted.
type ArtifactEntry struct {
	Path       string           `json:"path"`
	Type       string           `json:"type"`
	Executable bool             `json:"executable"`
	Size       int64            `json:"size"`
	Digest     canonical.Digest `json:"digest"`
	MediaType  string           `json:"media_type"`
}

// Exclusion is one path that did not become an entry, and why. Path is in the form of
// EscapePath.
type Exclusion struct {
	Path   string      `json:"path"`
	Code   reason.Code `json:"code"`
	Detail string      `json:"detail"`
}

// CheckPath refuses, with freeze.bad_name, a path that path policy v1 does not accept:
// whatever is not relative, beneath its root, and one and the same name to every
// reader. An accepted path is its own cleaned, NFC form.
func CheckPath(path string) *reason.Refusal {
	bad := func(what string) *reason.Refusal {
		return reason.New(reason.FreezeBadName, what, EscapePath(path), "give outputs plain relative names")
	}
	switch {
	case path == "":
		return bad("the path is empty")
	case len(path) > MaxPathBytes:
		return bad(fmt.Sprintf("the path has %d bytes, more than %d", len(path), MaxPathBytes))
	case !utf8.ValidString(path):
		return bad("the path is not valid UTF-8")
	case path[0] == '/':
		return bad("the path is absolute")
	case strings.Contains(path, `\`):
		return bad("the path holds a backslash, which separates names elsewhere")
	}
	for _, r := range path {
		// Format characters hide or reorder what a person reads; separators break lines.
		if unicode.In(r, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp) {
			return bad(fmt.Sprintf("the path holds the control or format character U+%04X", r))
		}
	}
	if !norm.NFC.IsNormalString(path) {
		return bad("the path is not in Unicode normal form C")
	}
	segments := strings.Split(path, "/")
	if len(segments) > MaxPathDepth {
		return bad(fmt.Sprintf("the path has %d names, more than %d", len(segments), MaxPathDepth))
	}
	for _, s := range segments {
		switch {
		case s == "":
			return bad("the path holds an empty name")
		case s == "." || s == "..":
			return bad("the path holds a dot segment")
		case len(s) > MaxSegmentBytes:
			return bad(fmt.Sprintf("a name has %d bytes, more than %d", len(s), MaxSegmentBytes))
		}
	}
	return nil
}

// EscapePath makes any bytes fit to be shown and recorded: a path of printable
// characters in normal form stays as it is, any other is quoted in ASCII, and what is
// longer than a path may be is cut.
func EscapePath(path string) string {
	cut := path
	if len(cut) > MaxPathBytes {
		cut = cut[:MaxPathBytes]
	}
	plain := cut != "" && cut[0] != '"' && utf8.ValidString(cut) && norm.NFC.IsNormalString(cut)
	for _, r := range cut {
		plain = plain && unicode.IsPrint(r)
	}
	if !plain {
		cut = strconv.QuoteToASCII(cut)
	}
	if len(path) > MaxPathBytes {
		cut += fmt.Sprintf("… (%d bytes)", len(path))
	}
	return cut
}

func validMediaType(s string) bool {
	kind, sub, ok := strings.Cut(s, "/")
	if !ok || kind == "" || sub == "" || len(s) > 255 {
		return false
	}
	for i := range len(s) {
		if c := s[i]; c <= ' ' || c > '~' {
			return false
		}
	}
	return true
}
