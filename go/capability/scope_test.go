package capability_test

import (
	"encoding/json"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/writ-runtime/writ/go/canonical"
	"github.com/writ-runtime/writ/go/capability"
	"github.com/writ-runtime/writ/go/reason"
)

func TestScopesHaveOneSpelling(t *testing.T) {
	for text, want := range map[string]string{
		"none":                           "none",
		"input:docs/**":                  "input:docs/**",
		"input:**":                       "input:**",
		"input:docs/übersicht 1.txt":     "input:docs/übersicht 1.txt",
		"output:a.b-c_d/report.json":     "output:a.b-c_d/report.json",
		"output:...a":                    "output:...a",
		"tool:text-stat.2":               "tool:text-stat.2",
		"tool:**":                        "tool:**",
		"model:Local/Small-4":            "model:Local/Small-4",
		"repo:owner/name":                "repo:owner/name",
		"branch:writ/**":                 "branch:writ/**",
		"credential:mirror":              "credential:mirror",
		"host:API.Example.COM:443":       "host:api.example.com:443",
		"host:api.example.com.:443":      "host:api.example.com:443",
		"host:a.example:8443,443,443":    "host:a.example:443,8443",
		"host:a.example:**":              "host:a.example:**",
		"host:**":                        "host:**",
		"host:**:**":                     "host:**",
		"host:**:53":                     "host:**:53",
		"host:192.0.2.1:80":              "host:192.0.2.1:80",
		"host:[2001:DB8:0:0::1]:80":      "host:[2001:db8::1]:80",
		"host:xn--bcher-kva.example:443": "host:xn--bcher-kva.example:443",
	} {
		s, err := capability.ParseScope(text)
		if err != nil {
			t.Errorf("%s: %v", text, err)
		} else if s.String() != want {
			t.Errorf("%s became %s, want %s", text, s, want)
		}
	}
}

func TestScopesWithTwoReadingsAreRefused(t *testing.T) {
	for name, text := range map[string]string{
		"empty":                      "",
		"no kind":                    "docs/**",
		"unknown kind":               "file:docs",
		"kind in upper case":         "INPUT:docs",
		"none with a body":           "none:x",
		"empty path":                 "input:",
		"only a slash":               "input:/",
		"absolute":                   "input:/etc/passwd",
		"dot-dot":                    "input:docs/../secrets",
		"leading dot-dot":            "input:../secrets",
		"trailing dot-dot":           "input:docs/..",
		"dot":                        "input:./docs",
		"three dots":                 "input:docs/.../x",
		"dot-dot below a subtree":    "input:docs/../**",
		"double slash":               "input:docs//a",
		"trailing slash":             "input:docs/",
		"backslash":                  `input:docs\..\x`,
		"percent":                    "input:docs%2f..%2fx",
		"percent of percent":         "input:docs/%252e%252e",
		"wildcard":                   "input:docs/*",
		"inner double star":          "input:docs/**/a",
		"star in a name":             "input:docs/a*",
		"triple star":                "input:docs/***",
		"question mark":              "input:docs/?",
		"brackets":                   "input:docs/[ab]",
		"braces":                     "input:{docs,secrets}",
		"nul":                        "input:docs\x00.txt",
		"newline":                    "input:docs\n",
		"tab":                        "input:do\tcs",
		"delete":                     "input:docs\x7f",
		"not NFC":                    "input:u\u0308ber",
		"not UTF-8":                  "input:\xff",
		"fullwidth dots":             "input:docs/．．/x",
		"one dot leader":             "input:docs/\u2024\u2024/x",
		"two dot leader":             "input:docs/\u2025/x",
		"fullwidth slash":            "input:docs／x",
		"fullwidth star":             "input:docs/＊",
		"fullwidth percent":          "input:docs％2e",
		"zero width":                 "input:do\u200bcs",
		"bidi override":              "input:\u202etxt.scod",
		"soft hyphen":                "input:do\u00adcs",
		"variation selector":         "input:docs\ufe0f",
		"no-break space":             "input:docs\u00a0",
		"leading space":              "input: docs",
		"trailing space":             "input:docs ",
		"colon in a path":            "input:docs:x",
		"tool in upper case":         "tool:TextStat",
		"tool with a slash":          "tool:a/b",
		"tool with a leading dot":    "tool:.hidden",
		"tool in Cyrillic":           "tool:tеxtstat",
		"model in Cyrillic":          "model:lоcal/small",
		"repo with a space":          "repo:owner/na me",
		"host without a port":        "host:api.example.com",
		"host with an empty port":    "host:api.example.com:",
		"port zero":                  "host:a.example:0",
		"port with a leading zero":   "host:a.example:0443",
		"port with a sign":           "host:a.example:+443",
		"port too large":             "host:a.example:65536",
		"port 2^32+443":              "host:a.example:4294967739",
		"port range":                 "host:a.example:1-65535",
		"port with a space":          "host:a.example: 443",
		"host with user":             "host:user@a.example:443",
		"host with scheme":           "host:https://a.example:443",
		"host with a path":           "host:a.example/x:443",
		"host star label":            "host:*.example.com:443",
		"host double star label":     "host:**.example.com:443",
		"host IDN":                   "host:bücher.example:443",
		"host fullwidth":             "host:ａ.example:443",
		"host ideographic full stop": "host:a。example:443",
		"host two trailing dots":     "host:a.example..:443",
		"host empty label":           "host:a..example:443",
		"host leading hyphen":        "host:-a.example:443",
		"host percent":               "host:a%2eexample:443",
		"host underscore":            "host:a_b.example:443",
		"short IPv4":                 "host:127.1:80",
		"decimal IPv4":               "host:2130706433:80",
		"hexadecimal IPv4":           "host:0x7f.0.0.1:80",
		"hexadecimal last label":     "host:a.0x7f:80",
		"octal IPv4":                 "host:0177.0.0.1:80",
		"IPv4 too large":             "host:256.0.0.1:80",
		"IPv6 without brackets":      "host:2001:db8::1:80",
		"IPv6 with a zone":           "host:[fe80::1%eth0]:80",
		"IPv4 in IPv6":               "host:[::ffff:127.0.0.1]:80",
		"IPv6 without a port":        "host:[::1]",
		"too long":                   "input:" + strings.Repeat("a", 1100),
		"too deep":                   "input:" + strings.Repeat("a/", 80) + "a",
	} {
		if s, err := capability.ParseScope(text); err == nil {
			t.Errorf("%s: %q became %s", name, text, s)
		} else if !reason.Is(err, reason.CapabilityMalformedScope) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestScopeContainment(t *testing.T) {
	for _, c := range []struct {
		outer, inner string
		contains     bool
	}{
		{"input:docs/**", "input:docs/a/b.txt", true},
		{"input:docs/**", "input:docs/a/**", true},
		{"input:docs/**", "input:docs", true},
		{"input:docs/**", "input:docs/**", true},
		{"input:docs/**", "input:docs2", false},
		{"input:docs/**", "input:docs2/**", false},
		{"input:docs/**", "input:doc", false},
		{"input:docs/**", "input:Docs/a", false},
		{"input:docs/**", "input:**", false},
		{"input:docs", "input:docs/**", false},
		{"input:docs", "input:docs/a", false},
		{"input:**", "input:docs/**", true},
		{"input:**", "output:docs/**", false},
		{"input:docs/**", "output:docs/a", false},
		{"tool:**", "tool:textstat", true},
		{"tool:textstat", "tool:**", false},
		{"tool:textstat", "tool:textstat2", false},
		{"model:local/**", "model:local/small", true},
		{"model:local/small", "model:local/small2", false},
		{"host:**", "host:a.example:443", true},
		{"host:**:443", "host:a.example:443", true},
		{"host:**:443", "host:a.example:80", false},
		{"host:**:443", "host:**", false},
		{"host:a.example:**", "host:a.example:80", true},
		{"host:a.example:80,443", "host:a.example:443", true},
		{"host:a.example:443", "host:a.example:80,443", false},
		{"host:a.example:443", "host:b.a.example:443", false},
		{"host:example:443", "host:a.example:443", false},
		{"none", "none", true},
		{"none", "tool:**", false},
	} {
		outer, inner := scope(t, c.outer), scope(t, c.inner)
		if got := outer.Contains(inner); got != c.contains {
			t.Errorf("%s contains %s: %v", outer, inner, got)
		}
	}
}

func TestZeroScopeIsNothing(t *testing.T) {
	var zero capability.Scope
	for _, text := range []string{"input:**", "host:**", "none"} {
		s := scope(t, text)
		if zero.Contains(s) || s.Contains(zero) || zero.Contains(zero) {
			t.Errorf("the zero scope and %s contain each other", s)
		}
		if _, ok := s.Intersect(zero); ok {
			t.Errorf("the zero scope meets %s", s)
		}
	}
}

func TestScopeIntersection(t *testing.T) {
	for _, c := range []struct{ a, b, both string }{
		{"input:docs/**", "input:docs/a.txt", "input:docs/a.txt"},
		{"input:docs/**", "input:docs/a/**", "input:docs/a/**"},
		{"input:docs/**", "input:docs", "input:docs"},
		{"input:docs/**", "input:other/**", ""},
		{"input:docs/a", "input:docs/b", ""},
		{"input:**", "input:docs/**", "input:docs/**"},
		{"input:docs/**", "output:docs/**", ""},
		{"tool:**", "tool:t", "tool:t"},
		{"tool:a", "tool:b", ""},
		{"host:a.example:80,443", "host:a.example:443,8443", "host:a.example:443"},
		{"host:a.example:80", "host:a.example:443", ""},
		{"host:**:443", "host:a.example:**", "host:a.example:443"},
		{"host:**:80,443", "host:a.example:443,22", "host:a.example:443"},
		{"host:a.example:**", "host:b.example:**", ""},
		{"host:**", "host:**:53", "host:**:53"},
	} {
		for _, pair := range [][2]string{{c.a, c.b}, {c.b, c.a}} {
			got, ok := scope(t, pair[0]).Intersect(scope(t, pair[1]))
			if ok != (c.both != "") || got.String() != c.both {
				t.Errorf("%s ∩ %s = %q, want %q", pair[0], pair[1], got, c.both)
			}
		}
	}
}

func TestScopesInDocumentsAreCheckedAndInNormalForm(t *testing.T) {
	type document struct {
		Scope capability.Scope `json:"scope,omitzero"`
	}
	for text, accepted := range map[string]bool{
		`{"scope":"input:docs/**"}`:    true,
		`{}`:                           true,
		`{"scope":"input:../x"}`:       false,
		`{"scope":"host:A.example:1"}`: false,
		`{"scope":7}`:                  false,
	} {
		var a, b document
		if err := canonical.Decode([]byte(text), &a); (err == nil) != accepted {
			t.Errorf("canonical: %s: %v", text, err)
		}
		if err := json.Unmarshal([]byte(text), &b); (err == nil) != accepted {
			t.Errorf("json: %s: %v", text, err)
		}
		if !accepted {
			continue
		}
		canon, err := canonical.Marshal(a)
		if err != nil || string(canon) != text {
			t.Errorf("canonical form of %s is %s (%v)", text, canon, err)
		}
		if other, err := json.Marshal(a); err != nil || string(other) != text {
			t.Errorf("JSON of %s is %s (%v)", text, other, err)
		}
	}
}

func TestParsingIsIdempotentAndNeverWidens(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.OneOf(
			rapid.StringMatching(`(input|output|tool|host|model|none|repo):[a-zA-Z0-9.*/:,\[\]%\\ -]{0,20}`),
			rapid.String(),
		).Draw(t, "text")
		s, err := capability.ParseScope(text)
		if err != nil {
			return
		}
		again, err := capability.ParseScope(s.String())
		if err != nil || again != s {
			t.Fatalf("%q became %s, and that %s (%v)", text, s, again, err)
		}
		if !s.Contains(s) {
			t.Fatalf("%s does not contain itself", s)
		}
		if strings.HasSuffix(s.String(), "**") && !strings.HasSuffix(strings.TrimSuffix(text, ":**"), "**") && !strings.HasSuffix(text, "**") {
			t.Fatalf("%q became the wildcard %s", text, s)
		}
	})
}

func scope(t *testing.T, text string) capability.Scope {
	t.Helper()
	s, err := capability.ParseScope(text)
	if err != nil {
		t.Fatal(err)
	}
	return s
}
