package corpus

import (
	"fmt"
	"strconv"
	"strings"
)

// Markdown returns the report for people.
func (r Report) Markdown() []byte {
	var b strings.Builder
	fmt.Fprintf(&b, "# Corpus report: %s\n\n", cell(r.Input))
	fmt.Fprintf(&b, "%s with %s, %s and %s in %s.\n\n", plural(r.Totals.Files, "file"), plural(r.Totals.Lines, "line"),
		plural(r.Totals.Words, "word"), plural(r.Totals.Characters, "character"), plural(r.Totals.Bytes, "byte"))
	r.markdownFiles(&b)
	r.markdownLines(&b)
	r.markdownDuplicates(&b)
	r.markdownProblems(&b)
	return []byte(b.String())
}

func (r Report) markdownFiles(b *strings.Builder) {
	b.WriteString("## Files\n\n")
	if len(r.Files) == 0 {
		b.WriteString("There are none.\n\n")
		return
	}
	b.WriteString("| file | bytes | lines | words | characters | longest line | SHA-256 begins |\n|:--|--:|--:|--:|--:|--:|:--|\n")
	for _, f := range r.Files {
		fmt.Fprintf(b, "| %s | %s | %s | %s | %s | %s | `%s` |\n", cell(f.Path), number(f.Bytes), number(f.Lines), number(f.Words), number(f.Characters), number(f.LongestLine), f.SHA256[:12])
	}
	fmt.Fprintf(b, "| **total** | **%s** | **%s** | **%s** | **%s** | | |\n\n", number(r.Totals.Bytes), number(r.Totals.Lines), number(r.Totals.Words), number(r.Totals.Characters))
}

func (r Report) markdownLines(b *strings.Builder) {
	b.WriteString("## Longest lines\n\n")
	if len(r.LongestLines) == 0 {
		b.WriteString("There are none.\n\n")
		return
	}
	b.WriteString("| characters | file | line | begins |\n|--:|:--|--:|:--|\n")
	for _, l := range r.LongestLines {
		fmt.Fprintf(b, "| %s | %s | %s | %s |\n", number(l.Characters), cell(l.Path), number(l.Line), cell(l.Excerpt))
	}
	b.WriteString("\n")
}

func (r Report) markdownDuplicates(b *strings.Builder) {
	b.WriteString("## Duplicates\n\n")
	if len(r.Duplicates) == 0 {
		b.WriteString("No two files have the same bytes.\n\n")
		return
	}
	fmt.Fprintf(b, "Keeping one file of each group would save %s.\n\n", plural(r.Totals.DuplicateBytes, "byte"))
	for _, g := range r.Duplicates {
		fmt.Fprintf(b, "- %s each, SHA-256 `%s…`:\n", plural(g.Bytes, "byte"), g.SHA256[:12])
		for _, p := range g.Paths {
			fmt.Fprintf(b, "  - %s\n", cell(p))
		}
	}
	b.WriteString("\n")
}

func (r Report) markdownProblems(b *strings.Builder) {
	b.WriteString("## Encoding\n\n")
	if len(r.Problems) == 0 {
		b.WriteString("Every file is clean UTF-8 with one kind of line ending.\n")
		return
	}
	b.WriteString("| file | problem | first at byte | times |\n|:--|:--|--:|--:|\n")
	for _, p := range r.Problems {
		fmt.Fprintf(b, "| %s | %s | %s | %s |\n", cell(p.Path), strings.ReplaceAll(p.Kind, "_", " "), number(p.Offset), number(p.Count))
	}
}

// cell escapes what has a meaning in a Markdown table.
func cell(s string) string {
	var b strings.Builder
	for _, r := range s {
		switch {
		case r < ' ' || r == 0x7f:
			r = '\ufffd'
		case strings.ContainsRune("\\`*_{}[]<>|#&~", r):
			b.WriteByte('\\')
		}
		b.WriteRune(r)
	}
	return b.String()
}

// number groups digits by thousands.
func number(n int64) string {
	s := strconv.FormatInt(n, 10)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

func plural(n int64, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return number(n) + " " + noun + "s"
}
