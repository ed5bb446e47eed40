package corpus_test

import (
	"encoding/json"
	"errors"
	"io/fs"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/writ-runtime/writ/plugins/tools/textstat/corpus"
)

func one(t *testing.T, text string) (corpus.File, []string) {
	t.Helper()
	r, err := corpus.Measure("in", fstest.MapFS{"f": {Data: []byte(text)}}, 3)
	if err != nil {
		t.Fatal(err)
	}
	var kinds []string
	for _, p := range r.Problems {
		kinds = append(kinds, p.Kind)
	}
	return r.Files[0], kinds
}

func TestCounts(t *testing.T) {
	for _, c := range []struct {
		text                              string
		lines, words, characters, longest int64
		problems                          []string
	}{
		{"", 0, 0, 0, 0, nil},
		{"\n", 1, 0, 1, 0, nil},
		{"one two\n", 1, 2, 8, 7, nil},
		{"one", 1, 1, 3, 3, []string{corpus.NoFinalLineEnding}},
		{"a\n\nbb\n", 3, 2, 6, 2, nil},
		{"a\r\nb\r\n", 2, 2, 6, 1, nil},
		{"a\r\nb\n", 2, 2, 5, 1, []string{corpus.MixedLineEndings}},
		{"φάρος\n", 1, 1, 6, 5, nil},
		{"a\u00a0b\u2003c\n", 1, 3, 6, 5, nil},
		{"caf\xe9\n", 1, 1, 5, 4, []string{corpus.InvalidUTF8}},
		{"\xef\xbb\xbfa\n", 1, 1, 3, 2, []string{corpus.ByteOrderMark}},
		{"a\x00b\n", 1, 1, 4, 3, []string{corpus.NULBytes}},
		{"\ufffd\n", 1, 1, 2, 1, nil},
	} {
		f, problems := one(t, c.text)
		if f.Lines != c.lines || f.Words != c.words || f.Characters != c.characters || f.LongestLine != c.longest || f.Bytes != int64(len(c.text)) {
			t.Errorf("%q: %+v", c.text, f)
		}
		if !slices.Equal(problems, c.problems) {
			t.Errorf("%q: problems %v, want %v", c.text, problems, c.problems)
		}
	}
}

func TestLongestLinesDuplicatesAndOrder(t *testing.T) {
	tree := fstest.MapFS{
		"b/z": {Data: []byte("four\nfive!\nfour\n")},
		"a":   {Data: []byte("four\nsix666\n")},
		"c":   {Data: []byte("four\nsix666\n")},
		"e":   {Data: nil}, "f": {Data: nil},
	}
	r, err := corpus.Measure("in", tree, 3)
	if err != nil {
		t.Fatal(err)
	}
	var paths []string
	for _, f := range r.Files {
		paths = append(paths, f.Path)
	}
	if !slices.Equal(paths, []string{"a", "b/z", "c", "e", "f"}) {
		t.Errorf("files %v", paths)
	}
	want := []corpus.Line{{Path: "a", Line: 2, Characters: 6, Excerpt: "six666"}, {Path: "c", Line: 2, Characters: 6, Excerpt: "six666"}, {Path: "b/z", Line: 2, Characters: 5, Excerpt: "five!"}}
	if !slices.Equal(r.LongestLines, want) {
		t.Errorf("longest %+v", r.LongestLines)
	}
	if len(r.Duplicates) != 1 || !slices.Equal(r.Duplicates[0].Paths, []string{"a", "c"}) || r.Totals.DuplicateBytes != 12 {
		t.Errorf("duplicates %+v, %d bytes", r.Duplicates, r.Totals.DuplicateBytes)
	}
	none, err := corpus.Measure("in", tree, 0)
	if err != nil || len(none.LongestLines) != 0 {
		t.Errorf("no longest lines were wanted: %v %v", none.LongestLines, err)
	}
}

func TestEmptyFolder(t *testing.T) {
	r, err := corpus.Measure("in", fstest.MapFS{}, 3)
	if err != nil {
		t.Fatal(err)
	}
	data, err := r.JSON()
	if err != nil || strings.Contains(string(data), "null") || !json.Valid(data) {
		t.Errorf("%v\n%s", err, data)
	}
	if md := string(r.Markdown()); !strings.Contains(md, "There are none.") {
		t.Error(md)
	}
}

func TestMissingFolder(t *testing.T) {
	sub, err := fs.Sub(fstest.MapFS{}, "none")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := corpus.Measure("in", sub, 3); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("answered %v", err)
	}
}

func TestMarkdownCannotBeBrokenByNames(t *testing.T) {
	r, err := corpus.Measure("in|put", fstest.MapFS{"a|b`<script>": {Data: []byte("x | y \x1b[31m\n")}}, 3)
	if err != nil {
		t.Fatal(err)
	}
	md := string(r.Markdown())
	if strings.Contains(md, "<script>") && !strings.Contains(md, `\<script\>`) || strings.Contains(md, "\x1b") {
		t.Error(md)
	}
	for line := range strings.Lines(md) {
		if strings.HasPrefix(line, "| ") && strings.Contains(line, "script") {
			if n := strings.Count(line, "|") - strings.Count(line, `\|`); n != 8 && n != 5 {
				t.Errorf("a row has %d bars: %s", n, line)
			}
		}
	}
}
