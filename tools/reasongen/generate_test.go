package main

import (
	"bytes"
	"os"
	"strings"
	"testing"
)

func TestGeneratedFileIsFresh(t *testing.T) {
	data, err := os.ReadFile("../../schemas/reasons.v1.json")
	if err != nil {
		t.Fatal(err)
	}
	want, err := Generate(data)
	if err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile("../../go/reason/codes.go")
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Error("go/reason/codes.go is stale: run go run ./tools/reasongen")
	}
}

func TestGenerateRefusesWrongRegistries(t *testing.T) {
	const exits = `"exits":[{"name":"ok","status":0,"summary":"s"},{"name":"internal","status":1,"summary":"s"}]`
	for _, c := range []struct{ name, in, want string }{
		{"not JSON", `{`, "parse"},
		{"other kind", `{"kind":"x",` + exits + `,"reasons":[]}`, "want writ.reasons.v1"},
		{"unknown field", `{"kind":"writ.reasons.v1","note":1,` + exits + `,"reasons":[]}`, "note"},
		{"same status", `{"kind":"writ.reasons.v1","exits":[{"name":"ok","status":0,"summary":"s"},{"name":"internal","status":0,"summary":"s"}],"reasons":[]}`, "belongs to"},
		{"shell status", `{"kind":"writ.reasons.v1","exits":[{"name":"ok","status":126,"summary":"s"}],"reasons":[]}`, "outside 0..125"},
		{"no internal", `{"kind":"writ.reasons.v1","exits":[{"name":"ok","status":0,"summary":"s"}],"reasons":[]}`, "missing"},
		{"code form", `{"kind":"writ.reasons.v1",` + exits + `,"reasons":[{"code":"Bad","exit":"internal","summary":"s"}]}`, "dotted"},
		{"code twice", `{"kind":"writ.reasons.v1",` + exits + `,"reasons":[{"code":"a.b","exit":"internal","summary":"s"},{"code":"a.b","exit":"internal","summary":"s"}]}`, "twice"},
		{"same constant", `{"kind":"writ.reasons.v1",` + exits + `,"reasons":[{"code":"a.b_c","exit":"internal","summary":"s"},{"code":"a_b.c","exit":"internal","summary":"s"}]}`, "name of"},
		{"unknown exit", `{"kind":"writ.reasons.v1",` + exits + `,"reasons":[{"code":"a.b","exit":"nope","summary":"s"}]}`, "nope"},
		{"refusal that succeeds", `{"kind":"writ.reasons.v1",` + exits + `,"reasons":[{"code":"a.b","exit":"ok","summary":"s"}]}`, "not one a refusal"},
		{"no summary", `{"kind":"writ.reasons.v1",` + exits + `,"reasons":[{"code":"a.b","exit":"internal","summary":""}]}`, "one line"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := Generate([]byte(c.in))
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want an error with %q", err, c.want)
			}
		})
	}
}

func TestConstName(t *testing.T) {
	for in, want := range map[string]string{
		"canonical.duplicate_key": "CanonicalDuplicateKey",
		"canonical.invalid_utf8":  "CanonicalInvalidUTF8",
		"journal.io":              "JournalIO",
		"id.malformed":            "IDMalformed",
	} {
		if got := constName(in); got != want {
			t.Errorf("%s: got %s, want %s", in, got, want)
		}
	}
}
