package corpus

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io/fs"
	"slices"
)

// ReportKind is the kind and version of a Report.
const ReportKind = "textstat.report.v1"

// Report is what is known of a folder of texts. Its schema is examples/corpus-report/report.schema.json.
type Report struct {
	Kind string `json:"kind"`
	// Input is the name of the input that was measured.
	Input  string `json:"input"`
	Totals Totals `json:"totals"`
	// Files by path.
	Files []File `json:"files"`
	// LongestLines from the longest down; of equally long ones, by path and line.
	LongestLines []Line `json:"longest_lines"`
	// Duplicates by the first path of each group.
	Duplicates []Group `json:"duplicates"`
	// Problems by path, and within a file in the order of the kinds.
	Problems []Problem `json:"problems"`
}

// Totals are sums over all files.
type Totals struct {
	Files      int64 `json:"files"`
	Bytes      int64 `json:"bytes"`
	Lines      int64 `json:"lines"`
	Words      int64 `json:"words"`
	Characters int64 `json:"characters"`
	// DuplicateBytes are the bytes that would be saved if of each group one file were kept.
	DuplicateBytes int64 `json:"duplicate_bytes"`
	// ProblemFiles is the number of files with at least one problem.
	ProblemFiles int64 `json:"problem_files"`
}

// Group is a set of files with the same bytes. Empty files are no duplicates of each other.
type Group struct {
	SHA256 string   `json:"sha256"`
	Bytes  int64    `json:"bytes"` // of one of them
	Paths  []string `json:"paths"`
}

// Measure reports on every regular file of the tree. top is how many of the longest lines to name.
func Measure(input string, tree fs.FS, top int) (Report, error) {
	// Empty lists are written as [], not as null.
	r := Report{Kind: ReportKind, Input: input, Files: []File{}, LongestLines: []Line{}, Duplicates: []Group{}, Problems: []Problem{}}
	err := read(tree, func(path string, data []byte) { r.add(measure(path, data, top), top) })
	if err != nil {
		return Report{}, err
	}
	r.Duplicates = duplicates(r.Files)
	for _, g := range r.Duplicates {
		r.Totals.DuplicateBytes += g.Bytes * int64(len(g.Paths)-1)
	}
	return r, nil
}

func (r *Report) add(f File, top int) {
	r.Files = append(r.Files, f)
	r.Totals.Files++
	r.Totals.Bytes += f.Bytes
	r.Totals.Lines += f.Lines
	r.Totals.Words += f.Words
	r.Totals.Characters += f.Characters
	if len(f.problems) > 0 {
		r.Totals.ProblemFiles++
	}
	r.Problems = append(r.Problems, f.problems...)
	for _, l := range f.longest {
		r.LongestLines = keepLongest(r.LongestLines, l, top)
	}
}

func duplicates(files []File) []Group {
	groups := map[string]*Group{}
	for _, f := range files {
		if f.Bytes == 0 {
			continue
		}
		g := groups[f.SHA256]
		if g == nil {
			g = &Group{SHA256: f.SHA256, Bytes: f.Bytes}
			groups[f.SHA256] = g
		}
		g.Paths = append(g.Paths, f.Path)
	}
	out := []Group{}
	for _, g := range groups {
		if len(g.Paths) > 1 {
			out = append(out, *g)
		}
	}
	slices.SortFunc(out, func(a, b Group) int { return cmp.Compare(a.Paths[0], b.Paths[0]) })
	return out
}

// JSON returns the report as indented JSON with a final line feed.
func (r Report) JSON() ([]byte, error) {
	b, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("encode report: %w", err)
	}
	return append(b, '\n'), nil
}
