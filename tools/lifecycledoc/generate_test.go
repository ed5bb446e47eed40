package main

import (
	"bytes"
	"fmt"
	"os"
	"strings"
	"testing"
)

func TestGeneratedDocumentIsFresh(t *testing.T) {
	r, err := registry()
	if err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile("../../docs/lifecycles.md")
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, Generate(r)) {
		t.Error("docs/lifecycles.md is stale: run go run ./tools/lifecycledoc")
	}
}

// Every edge of every machine is an arrow and a row, with its receipts and its reason.
func TestEveryEdgeIsDrawn(t *testing.T) {
	r, err := registry()
	if err != nil {
		t.Fatal(err)
	}
	for _, section := range strings.Split(string(Generate(r)), "\n## ")[1:] {
		name, body, _ := strings.Cut(section, "\n")
		m := r.Latest(name)
		if m == nil {
			t.Fatalf("no machine is called %q", name)
		}
		for _, tr := range m.Transitions {
			_, what := tr.Family.Split()
			for _, from := range tr.From {
				arrow := fmt.Sprintf("    %s --> %s: ", from, tr.To)
				if from == "" {
					arrow = fmt.Sprintf("    [*] --> %s: ", tr.To)
				}
				_, label, drawn := strings.Cut(body, arrow)
				if label, _, _ = strings.Cut(label, "\n"); !drawn || !strings.Contains(", "+label+",", ", "+what+",") {
					t.Errorf("%s from %q to %q is not drawn", tr.Family, from, tr.To)
				}
			}
			row := fmt.Sprintf("| %s | %s | %s |", what, tr.To, strings.Join(tr.Receipts, ", "))
			if !strings.Contains(body, row) || !strings.Contains(body, tr.Addition) {
				t.Errorf("%s to %q has no row with its receipts and reason", tr.Family, tr.To)
			}
		}
		for _, s := range m.States() {
			if ends := strings.Contains(body, fmt.Sprintf("    %s --> [*]\n", s)); ends != m.Terminal(s) {
				t.Errorf("%s: that %q is terminal is drawn as %v", name, s, ends)
			}
		}
	}
}
