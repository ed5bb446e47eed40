package main

import (
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"charm.land/lipgloss/v2"
)

// style colours what a terminal shows, and leaves everything else plain.
type style struct {
	colour bool
}

func (c *command) style() style { return style{isTerminal(c.out) && os.Getenv("NO_COLOR") == ""} }

func (s style) bold(t string) string  { return s.render(lipgloss.NewStyle().Bold(true), t) }
func (s style) faint(t string) string { return s.render(lipgloss.NewStyle().Faint(true), t) }
func (s style) good(t string) string {
	return s.render(lipgloss.NewStyle().Bold(true).Foreground(lipgloss.Color("2")), t)
}
func (s style) bad(t string) string {
	return s.render(lipgloss.NewStyle().Bold(true).Foreground(lipgloss.Color("1")), t)
}

func (s style) render(l lipgloss.Style, t string) string {
	if !s.colour {
		return t
	}
	return l.Render(t)
}

// section prints a label once, and lines beneath each other beside it.
func section(w io.Writer, s style, label string, lines ...string) {
	for i, line := range lines {
		if i > 0 {
			label = ""
		}
		fmt.Fprintf(w, "  %s%s  %s\n", s.faint(label), strings.Repeat(" ", max(0, labelWidth-len(label))), line)
	}
}

const labelWidth = 9

// columns pads the cells of each column to the widest.
func columns(rows [][]string) []string {
	var widths []int
	for _, r := range rows {
		for i, cell := range r {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], lipgloss.Width(cell))
		}
	}
	lines := make([]string, 0, len(rows))
	for _, r := range rows {
		var b strings.Builder
		for i, cell := range r {
			if i > 0 {
				b.WriteString("  ")
			}
			b.WriteString(cell)
			if i < len(r)-1 {
				b.WriteString(strings.Repeat(" ", widths[i]-lipgloss.Width(cell)))
			}
		}
		lines = append(lines, strings.TrimRight(b.String(), " "))
	}
	return lines
}

// plain makes text that others wrote safe to print: whatever could move the cursor, change
// colours or turn the writing direction is shown as an escape, and what is very long is cut.
// --json prints all of it.
func plain(t string) string {
	const most = 400
	if runes := []rune(t); len(runes) > most {
		t = string(runes[:most]) + "…"
	}
	return escaped(t)
}

// lines is plain for text of several lines, of which nothing is cut.
func lines(t string) string {
	parts := strings.Split(t, "\n")
	for i, p := range parts {
		parts[i] = escaped(p)
	}
	return strings.Join(parts, "\n")
}

func escaped(t string) string {
	var b strings.Builder
	for _, r := range t {
		if unicode.IsPrint(r) || r == '\t' {
			b.WriteRune(r)
		} else {
			b.WriteString(strings.Trim(strconv.QuoteRuneToASCII(r), "'"))
		}
	}
	return b.String()
}

// few cuts a list to what a person reads, and says how many more there are and where.
func few(lines []string, more string) []string {
	const most = 20
	if len(lines) <= most {
		return lines
	}
	return append(lines[:most:most], fmt.Sprintf("… and %d more: %s", len(lines)-most, more))
}

// count renders a number with its noun.
func count[N int | int64](n N, noun string) string {
	if n != 1 {
		noun += "s"
	}
	return fmt.Sprintf("%d %s", n, noun)
}

// joined joins what is not empty.
func joined(sep string, parts ...string) string {
	return strings.Join(slices.DeleteFunc(parts, func(p string) bool { return p == "" }), sep)
}

// size renders bytes for a person.
func size(n int64) string {
	switch {
	case n < 1000:
		return fmt.Sprintf("%d B", n)
	case n < 1000*1000:
		return fmt.Sprintf("%.1f kB", float64(n)/1000)
	}
	return fmt.Sprintf("%.1f MB", float64(n)/1e6)
}

// short cuts a digest to what a person compares.
func short(digest string) string {
	if len(digest) > 19 {
		return digest[:19]
	}
	return digest
}
