package bench_test

import (
	"fmt"
	"io"
	"slices"
	"text/tabwriter"
	"time"

	"github.com/writ-runtime/writ/go/operation"
	"github.com/writ-runtime/writ/testing/way"
)

// table holds, by benchmark, how long each step of each attempt took.
type table struct {
	names  []string
	values map[string]map[string][]time.Duration
}

// set keeps the last measurement of a benchmark: the one with the most attempts.
func (t *table) set(name string, accounts []way.Account) {
	if t.values == nil {
		t.values = map[string]map[string][]time.Duration{}
	}
	if !slices.Contains(t.names, name) {
		t.names = append(t.names, name)
	}
	t.values[name] = map[string][]time.Duration{}
	for _, a := range accounts {
		for row, d := range measured(a) {
			t.values[name][row] = append(t.values[name][row], d)
		}
	}
}

const (
	admit   = "admit: validate, decide, compile"
	between = "between: attest, adapter start, polls, kernel"
	total   = "whole way"
)

// turns are the six commits of an attempt that succeeds.
func turns() []string {
	return []string{
		"commit 1: submit, reserve", "commit 2: activate, begin", "commit 3: attested, begin start",
		"commit 4: completed, begin freeze", "commit 5: reduced, begin cleanup", "commit 6: closed",
	}
}

// rows are the steps in the order in which they happen.
func rows() []string {
	turn := turns()
	return []string{
		admit, turn[0], turn[1], string(operation.Provision), string(operation.Materialize), string(operation.Prepare),
		turn[2], string(operation.Start), string(operation.Launch), turn[3], string(operation.Freeze), string(operation.Collect),
		turn[4], string(operation.Cleanup), string(operation.Destroy), turn[5], between, total,
	}
}

// measured says how long each row of an attempt took.
func measured(a way.Account) map[string]time.Duration {
	m := map[string]time.Duration{total: a.Total}
	rest := a.Total
	for kind, d := range a.Steps {
		m[string(kind)] = d
		rest -= d
	}
	m[admit] = a.Admit
	for i, d := range a.Commits {
		m[turns()[i]] = d
		rest -= d
		if i == 0 {
			m[admit] -= d
		}
	}
	// A launch runs while its start is still answered, so a little of it counts twice.
	m[between] = max(rest-m[admit], 0)
	return m
}

// write prints the table, if anything was measured.
func (t *table) write(out io.Writer) {
	if len(t.names) == 0 {
		return
	}
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprint(w, "\nmilliseconds\t")
	for _, name := range t.names {
		fmt.Fprintf(w, "%s p50\tp99\t", name)
	}
	fmt.Fprintln(w)
	for _, row := range rows() {
		fmt.Fprintf(w, "%s\t", row)
		for _, name := range t.names {
			d := slices.Sorted(slices.Values(t.values[name][row]))
			fmt.Fprintf(w, "%.1f\t%.1f\t", millis(percentile(d, 50)), millis(percentile(d, 99)))
		}
		fmt.Fprintln(w)
	}
	_ = w.Flush()
}
