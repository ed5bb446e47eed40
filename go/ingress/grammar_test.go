package ingress_test

import (
	"strings"
	"testing"

	"github.com/writ-runtime/writ/go/ingress"
	"github.com/writ-runtime/writ/go/reason"
)

func TestParse(t *testing.T) {
	for text, want := range map[string]string{
		"/writ status": "status||",
		"/writ wake":   "wake||",
		`/writ cancel-work wo_1 --expected-version 3 --reason "no longer needed"`:                                                              "cancel-work|wo_1|expected-version=3,reason=no longer needed",
		"/writ cancel-work wo_1 --expected-version 3 --reason late":                                                                            "cancel-work|wo_1|expected-version=3,reason=late",
		`/writ cancel-work wo_1 --expected-version 3 --reason "--x \"ü\""`:                                                                     `cancel-work|wo_1|expected-version=3,reason=--x "ü"`,
		"/writ resolve-ambiguous-effect att_1 --disposition confirmed_absent --operation-key a/b --evidence e --expected-version 9 --reason r": "resolve-ambiguous-effect|att_1|disposition=confirmed_absent,operation-key=a/b,evidence=e,expected-version=9,reason=r",
	} {
		in, err := ingress.Parse(text)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		var flags []string
		for _, f := range in.Flags {
			flags = append(flags, f.Name+"="+f.Value)
		}
		if got := in.Verb + "|" + in.Target + "|" + strings.Join(flags, ","); got != want {
			t.Errorf("%s: %s", text, got)
		}
	}
}

func TestParseRepairsNothing(t *testing.T) {
	for name, text := range map[string]string{
		"nothing":              "",
		"no prefix":            "status",
		"another prefix":       "/org status",
		"capitals":             "/writ Status",
		"an abbreviation":      "/writ stat",
		"two spaces":           "/writ  status",
		"a trailing space":     "/writ status ",
		"a leading space":      " /writ status",
		"a new line":           "/writ status\n",
		"a tab":                "/writ\tstatus",
		"two commands":         "/writ status; /writ wake",
		"an unknown verb":      "/writ merge x",
		"too much":             "/writ status all",
		"a quoted verb":        `/writ "status"`,
		"no target":            "/writ cancel-work --expected-version 3 --reason x",
		"a flag short":         "/writ cancel-work wo_1 --expected-version 3",
		"another order":        "/writ cancel-work wo_1 --reason x --expected-version 3",
		"an equals sign":       "/writ cancel-work wo_1 --expected-version=3 --reason=x",
		"a flag twice":         "/writ cancel-work wo_1 --expected-version 3 --expected-version 3 --reason x",
		"no value":             "/writ cancel-work wo_1 --expected-version --reason --reason x",
		"an empty value":       `/writ cancel-work wo_1 --expected-version 3 --reason ""`,
		"a broken quote":       `/writ cancel-work wo_1 --expected-version 3 --reason "x`,
		"more after a quote":   `/writ cancel-work wo_1 --expected-version 3 --reason "x"y`,
		"single quotes":        `/writ cancel-work wo_1 --expected-version 3 --reason 'two words'`,
		"a control character":  `/writ cancel-work wo_1 --expected-version 3 --reason "\u0007"`,
		"not ASCII, bare":      "/writ cancel-work wo_1 --expected-version 3 --reason ü",
		"not UTF-8":            "/writ cancel-work wo_1 --expected-version 3 --reason \xff",
		"a look-alike":         "/writ cancel‐work wo_1 --expected-version 3 --reason x",
		"a no-break space":     "/writ\u00a0status",
		"a shell substitution": "/writ cancel-work $(id) --expected-version 3",
	} {
		if in, err := ingress.Parse(text); !reason.Is(err, reason.IngressMalformed) {
			t.Errorf("%s: %+v, %v", name, in, err)
		}
	}
	if _, err := ingress.Parse("/writ status " + strings.Repeat("x", ingress.MaxContent)); !reason.Is(err, reason.IngressTooLarge) {
		t.Errorf("too large: %v", err)
	}
}

func FuzzParse(f *testing.F) {
	f.Add("/writ status")
	f.Add(`/writ cancel-work wo_1 --expected-version 3 --reason "no \"longer\" ü"`)
	f.Fuzz(func(t *testing.T, text string) {
		in, err := ingress.Parse(text)
		if err != nil {
			if _, ok := reason.As(err); !ok {
				t.Fatalf("%q: %v", text, err)
			}
			return
		}
		again, err := ingress.Parse(in.Render())
		if err != nil || again.Render() != in.Render() {
			t.Fatalf("%q renders as %q, which is %v", text, in.Render(), err)
		}
	})
}
