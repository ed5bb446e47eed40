package suite

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/open-policy-agent/opa/v1/cover"
)

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

// percent is 100 for an empty file: nothing in it was missed.
func percent(part, whole int) float64 {
	if whole == 0 {
		return 100
	}
	return 100 * float64(part) / float64(whole)
}

// missed names the lines that no test reached, each once: "3, 7-8".
func missed(f *cover.FileReport) string {
	rows := map[int]bool{}
	for _, r := range f.NotCovered {
		for row := r.Start.Row; row <= r.End.Row; row++ {
			rows[row] = true
		}
	}
	if len(rows) == 0 {
		return ""
	}
	var ranges []string
	for _, row := range slices.Sorted(maps.Keys(rows)) {
		if rows[row-1] {
			continue // inside a range
		}
		end := row
		for rows[end+1] {
			end++
		}
		if end == row {
			ranges = append(ranges, fmt.Sprint(row))
		} else {
			ranges = append(ranges, fmt.Sprintf("%d-%d", row, end))
		}
	}
	return " (not reached: " + strings.Join(ranges, ", ") + ")"
}
