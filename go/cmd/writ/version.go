package main

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/writ-runtime/writ/go/canonical"
	"github.com/writ-runtime/writ/go/kernel"
	"github.com/writ-runtime/writ/go/pin"
	"github.com/writ-runtime/writ/schemas"
)

// version of this release.
const version = "0.1.0"

func (c *command) versionCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version and every pin",
		Args:  exact(),
		RunE:  func(*cobra.Command, []string) error { return c.version() },
	}
}

// pins is what this release will run, by digest.
type pins struct {
	Version     string           `json:"version"`
	Transitions canonical.Digest `json:"transition_registry"`
	Effects     canonical.Digest `json:"effect_class_registry"`
	Dist        string           `json:"dist"`
	Locks       []pin.LockDigest `json:"locks"`
	Entries     []pinnedEntry    `json:"entries"`
}

type pinnedEntry struct {
	Kind     string           `json:"kind"`
	Name     string           `json:"name"`
	Version  string           `json:"version"`
	Platform string           `json:"platform"`
	Digest   canonical.Digest `json:"sha256"`
}

func (c *command) version() error {
	dist, err := c.findDist()
	if err != nil {
		return err
	}
	set, err := pin.Open(dist)
	if err != nil {
		return err
	}
	defer set.Close()
	k, err := kernel.Open(schemas.FS)
	if err != nil {
		return err
	}
	p := pins{Version: version, Transitions: k.Transitions().Digest(), Effects: k.Classes().Digest(), Dist: dist, Locks: set.Digests()}
	for _, e := range set.Entries() {
		p.Entries = append(p.Entries, pinnedEntry{e.Kind, e.Name, e.Version, e.Platform, e.Digest})
	}
	return c.print(p, func(w io.Writer) {
		s := c.style()
		fmt.Fprintf(w, "%s %s\n\n", s.bold("writ"), p.Version)
		rows := [][]string{}
		for _, e := range p.Entries {
			rows = append(rows, []string{e.Kind, e.Name, e.Version, e.Platform, s.faint(string(e.Digest))})
		}
		rows = append(rows, []string{"registry", "transitions", "", "", s.faint(string(p.Transitions))},
			[]string{"registry", "effect classes", "", "", s.faint(string(p.Effects))})
		for _, line := range columns(rows) {
			fmt.Fprintln(w, "  "+line)
		}
	})
}
