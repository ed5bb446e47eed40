package schema_test

import (
	"strings"
	"testing"

	"github.com/writ-runtime/writ/go/reason"
)

func TestStringsOfYAML11StayStrings(t *testing.T) {
	for _, word := range []string{"yes", "no", "on", "off", "y", "n", "Yes", "OFF", "1.2.3", "0xyz", "8080:80", "a:b", "-", "+", "1:", "v1", "1 2", "-x", ".x", "=", "2026-01", "10.0.0.1", "12e", "_1"} {
		d, err := open(t).Load("order.yaml", []byte(strings.Replace(order, "Count the words", word, 1)))
		if word == "1:" || word == "-" {
			continue // YAML itself reads these otherwise
		}
		if err != nil {
			t.Errorf("%s: %v", word, err)
			continue
		}
		if title, _ := d.Value().Get("title"); title.Str() != word {
			t.Errorf("%s became %q", word, title.Str())
		}
	}
}

func TestTextForms(t *testing.T) {
	for in, want := range map[string]string{
		"'it''s'": "it's", `"a\tb\u00e9\x41\U0001F602"`: "a\tbéA😂", "|\n  one\n  two": "one\ntwo\n", ">-\n  one\n  two\n\n  three": "one two\nthree",
		"plain # comment": "plain", "plain\n  goes on": "plain goes on", "\"a\\\n  b\"": "ab", "'1.5'": "1.5", "'null'": "null", `"\ufffd"`: "\ufffd",
	} {
		d, err := open(t).Load("order.yaml", []byte(strings.Replace(order, "Count the words", in, 1)))
		if err != nil {
			t.Errorf("%q: %v", in, err)
			continue
		}
		if title, _ := d.Value().Get("title"); title.Str() != want {
			t.Errorf("%q became %q, want %q", in, title.Str(), want)
		}
	}
	for _, in := range []string{`"\ud83d"`, `"\ude02"`, `"\ud83d\u0041"`, `"\ud83d\ude02"`, `"\uZZZZ"`, `"\q"`} {
		if _, err := open(t).Load("order.yaml", []byte(strings.Replace(order, "Count the words", in, 1))); reason.ExitOf(err) != 3 {
			t.Errorf("%q is accepted", in)
		}
	}
}

func TestEmptyDocuments(t *testing.T) {
	for _, in := range []string{"", "\n\n", "# only a comment\n", "---\n", "null", "[]", "- a", "text", "42"} {
		_, err := open(t).Load("order.yaml", []byte(in))
		if reason.CodeOf(err) != reason.SchemaUnknownKind {
			t.Errorf("%q: %v", in, err)
		}
	}
}
