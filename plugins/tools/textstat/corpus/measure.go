// Package corpus measures a folder of texts: how much there is, which lines are longest, which files are the same,
// and what is wrong with their encoding. Everything is an integer, and every order is defined.
package corpus

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Kinds of problem.
const (
	InvalidUTF8       = "invalid_utf8"
	ByteOrderMark     = "byte_order_mark"
	MixedLineEndings  = "mixed_line_endings"
	NULBytes          = "nul_bytes"
	NoFinalLineEnding = "no_final_line_ending"
)

// File is one measured file.
type File struct {
	Path  string `json:"path"`
	Bytes int64  `json:"bytes"`
	// Lines are ended by LF, except that bytes after the last LF are a line too.
	Lines int64 `json:"lines"`
	// Words are runs of characters other than white space.
	Words int64 `json:"words"`
	// Characters are Unicode code points; a byte that belongs to none counts as one.
	Characters  int64  `json:"characters"`
	LongestLine int64  `json:"longest_line"` // in characters, without its ending
	SHA256      string `json:"sha256"`       // of the bytes, hexadecimal

	problems []Problem
	longest  []Line
}

// Problem is one thing that is wrong with the encoding of a file.
type Problem struct {
	Path string `json:"path"`
	Kind string `json:"kind"`
	// Offset is the byte at which it shows first, Count how often it shows.
	Offset int64 `json:"offset"`
	Count  int64 `json:"count"`
}

// Line is one long line.
type Line struct {
	Path       string `json:"path"`
	Line       int64  `json:"line"` // from 1
	Characters int64  `json:"characters"`
	// Excerpt is the beginning of the line, with U+FFFD for what is no text.
	Excerpt string `json:"excerpt"`
}

const excerptCharacters = 60

// measure measures one file and keeps its top longest lines.
func measure(path string, data []byte, top int) File {
	sum := sha256.Sum256(data)
	f := File{Path: path, Bytes: int64(len(data)), Words: int64(len(bytes.FieldsFunc(data, unicode.IsSpace))),
		Characters: int64(utf8.RuneCount(data)), SHA256: hex.EncodeToString(sum[:])}
	for rest := data; len(rest) > 0; {
		line, after, _ := bytes.Cut(rest, []byte{'\n'})
		rest = after
		f.Lines++
		line = bytes.TrimSuffix(line, []byte{'\r'})
		n := int64(utf8.RuneCount(line))
		f.LongestLine = max(f.LongestLine, n)
		if n > 0 {
			f.longest = keepLongest(f.longest, Line{Path: path, Line: f.Lines, Characters: n, Excerpt: excerpt(line)}, top)
		}
	}
	f.problems = problems(path, data)
	return f
}

// keepLongest adds a line and keeps the top longest; of equally long ones, those that come first.
func keepLongest(lines []Line, l Line, top int) []Line {
	if len(lines) == top && (top == 0 || lines[top-1].Characters >= l.Characters) {
		return lines
	}
	i, _ := slices.BinarySearchFunc(lines, l, func(a, b Line) int {
		if c := cmp.Compare(b.Characters, a.Characters); c != 0 {
			return c
		}
		return -1 // after its equals
	})
	lines = slices.Insert(lines, i, l)
	return lines[:min(len(lines), top)]
}

func excerpt(line []byte) string {
	var b strings.Builder
	n := 0
	for _, r := range string(line) {
		if n++; n > excerptCharacters {
			b.WriteRune('…')
			break
		}
		if r == utf8.RuneError || !unicode.IsPrint(r) && r != ' ' {
			r = utf8.RuneError
		}
		b.WriteRune(r)
	}
	return b.String()
}

func problems(path string, data []byte) []Problem {
	var out []Problem
	add := func(kind string, offset, count int) {
		if count > 0 {
			out = append(out, Problem{Path: path, Kind: kind, Offset: int64(offset), Count: int64(count)})
		}
	}
	first, count := -1, 0
	for i := 0; i < len(data); {
		r, size := utf8.DecodeRune(data[i:])
		if r == utf8.RuneError && size == 1 {
			if count == 0 {
				first = i
			}
			count++
		}
		i += size
	}
	add(InvalidUTF8, first, count)
	if bytes.HasPrefix(data, []byte("\xef\xbb\xbf")) {
		add(ByteOrderMark, 0, 1)
	}
	crlf := bytes.Count(data, []byte("\r\n"))
	if lf := bytes.Count(data, []byte{'\n'}) - crlf; lf > 0 && crlf > 0 {
		add(MixedLineEndings, bytes.Index(data, []byte("\r\n")), crlf)
	}
	add(NULBytes, bytes.IndexByte(data, 0), bytes.Count(data, []byte{0}))
	if len(data) > 0 && data[len(data)-1] != '\n' {
		add(NoFinalLineEnding, len(data), 1)
	}
	return out
}

// read calls use for every regular file of the tree, by path.
func read(tree fs.FS, use func(path string, data []byte)) error {
	var paths []string
	err := fs.WalkDir(tree, ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.Type().IsRegular() {
			paths = append(paths, path)
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("look for documents: %w", err)
	}
	slices.Sort(paths)
	for _, p := range paths {
		data, err := fs.ReadFile(tree, p)
		if err != nil {
			return fmt.Errorf("read document: %w", err)
		}
		use(p, data)
	}
	return nil
}
