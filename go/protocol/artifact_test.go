package protocol_test

import (
	"path"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"

	"github.com/writ-runtime/writ/go/canonical"
	"github.com/writ-runtime/writ/go/protocol"
	"github.com/writ-runtime/writ/go/reason"
)

func TestCheckPath(t *testing.T) {
	good := []string{"a", "report.json", "out/a b/c.txt", "ä", "日本語/文", ".hidden", "...", "a*", "😀", strings.Repeat("a", 255),
		strings.Repeat("a/", 31) + "a"}
	bad := []string{"", "/", "/a", "a/", "a//b", "./a", "a/.", "..", "../a", "a/../b", "a/..", `a\b`, `..\a`, "a\x00b", "a\nb", "a\x7f", "a\u0085b",
		"a\u202eb", "a\u200bb", "\ufeffa", "a\u2028b", "\xff", "a/\xc3", "a\u0308", "\u212b", strings.Repeat("a", 256), strings.Repeat("a/", 32) + "a",
		strings.Repeat("abcdefgh/", 113) + "abcdefgh"}
	for _, p := range good {
		if err := protocol.CheckPath(p); err != nil {
			t.Errorf("%q: %v", p, err)
		}
	}
	for _, p := range bad {
		if err := protocol.CheckPath(p); err == nil || err.Code != reason.FreezeBadName {
			t.Errorf("%q: %v, want a refusal", p, err)
		}
	}
}

func FuzzCheckPath(f *testing.F) {
	for _, s := range []string{"a", "a/b", "../a", "/a", "a\u0308", "\xff", `a\b`, "a//b", "a/./b"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, p string) {
		escaped := protocol.EscapePath(p)
		if !utf8.ValidString(escaped) || strings.ContainsFunc(escaped, unicode.IsControl) || len(escaped) > 8*protocol.MaxPathBytes {
			t.Fatalf("%q is escaped as %q", p, escaped)
		}
		if protocol.CheckPath(p) != nil {
			return
		}
		if p != path.Clean(p) || path.IsAbs(p) || p == "." || p == ".." || strings.HasPrefix(p, "../") || !norm.NFC.IsNormalString(p) ||
			path.Join("/workspace", p) != "/workspace/"+p {
			t.Fatalf("%q was accepted", p)
		}
		if escaped != p && strings.ContainsAny(p, "\x00\\\n") {
			t.Fatalf("%q was accepted and needs escaping", p)
		}
	})
}

func TestEscapePathKeepsNamesApart(t *testing.T) {
	seen := map[string]string{}
	for _, p := range []string{"a", `"a"`, "a\n", `a\n`, `"a\n"`, "\xff", `\xff`, "\ufffd", "", `""`} {
		e := protocol.EscapePath(p)
		if other, taken := seen[e]; taken {
			t.Errorf("%q and %q are both escaped as %s", p, other, e)
		}
		seen[e] = p
	}
}

func policy(paths ...string) protocol.OutputPolicy {
	p := protocol.OutputPolicy{MaxCount: 10, MaxBytes: 1000, PathPolicyVersion: protocol.PathPolicyV1}
	for _, path := range paths {
		p.Paths = append(p.Paths, protocol.Declared{Path: path, MediaType: "text/plain"})
	}
	return p
}

func TestOutputPolicyCheck(t *testing.T) {
	for _, p := range []protocol.OutputPolicy{policy(), policy("a"), policy("a", "b/**", "b/c"), policy("b/**", "b/c/**")} {
		if err := p.Check(); err != nil {
			t.Errorf("%+v: %v", p, err)
		}
	}
	with := func(change func(*protocol.OutputPolicy)) protocol.OutputPolicy {
		p := policy("a")
		change(&p)
		return p
	}
	for _, p := range []protocol.OutputPolicy{
		policy("**"), policy("/**"), policy("../**"), policy("*"), policy("a/*"), policy("a/*/b"), policy("*/**"), policy("a/**/b"), policy("/a"),
		policy("a/../b"), policy("a", "a"), policy("a", "A"), policy("a/**", "a/**"), policy("a", "a/b"), policy("a", "a/**"), policy(""),
		with(func(p *protocol.OutputPolicy) { p.PathPolicyVersion = "" }),
		with(func(p *protocol.OutputPolicy) { p.MaxCount = -1 }),
		with(func(p *protocol.OutputPolicy) { p.MaxCount = protocol.MaxOutputs + 1 }),
		with(func(p *protocol.OutputPolicy) { p.MaxBytes = -1 }),
		with(func(p *protocol.OutputPolicy) { p.MaxBytes = canonical.MaxInteger + 1 }),
		with(func(p *protocol.OutputPolicy) { p.Paths[0].MediaType = "" }),
		with(func(p *protocol.OutputPolicy) { p.Paths[0].MediaType = "text/pl ain" }),
		with(func(p *protocol.OutputPolicy) { p.Paths = make([]protocol.Declared, protocol.MaxOutputs+1) }),
	} {
		if err := p.Check(); !reason.Is(err, reason.FreezeBadPolicy) {
			t.Errorf("%.200v: %v, want freeze.bad_policy", p, err)
		}
	}
}

func TestMatch(t *testing.T) {
	p := policy("a.txt", "out/**", "out/deep/**", "out/deep/x")
	for path, want := range map[string]string{
		"a.txt": "a.txt", "a.txt/b": "", "A.txt": "", "out": "", "outer/x": "", "out/x": "out/**", "out/deep": "out/**",
		"out/deep/y": "out/deep/**", "out/deep/x": "out/deep/x", "out/deep/x/y": "out/deep/**",
	} {
		d, ok := p.Match(path)
		if d.Path != want || ok != (want != "") {
			t.Errorf("%q is covered by %q, want %q", path, d.Path, want)
		}
	}
}

func TestManifestIsCanonical(t *testing.T) {
	m := protocol.ArtifactManifest{Kind: protocol.ArtifactManifestKind, Entries: []protocol.ArtifactEntry{{Path: "a", Type: "file"}}}
	b, err := canonical.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	want := `{"attestation":"","bytes":0,"entries":[{"digest":"","executable":false,"media_type":"","path":"a","size":0,"type":"file"}],` +
		`"kind":"writ.artifact_manifest.v1","omitted":[],"path_policy":"","rejected":[]}`
	if string(b) != want {
		t.Errorf("manifest\n%s\nwant\n%s", b, want)
	}
}
