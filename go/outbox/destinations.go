package outbox

import (
	"fmt"
	"path/filepath"
	"strings"

	"github.com/writ-runtime/writ/go/canonical"
	"github.com/writ-runtime/writ/go/capability"
	"github.com/writ-runtime/writ/go/pin"
	"github.com/writ-runtime/writ/go/reason"
)

// DestinationsKind is the registered kind of Destinations.
const DestinationsKind = "writ.outbox_destinations.v1"

// DestinationsFile is where a state folder holds the destinations of its deployment.
const DestinationsFile = "outbox.yaml"

// Destinations says where this deployment lets accepted results go. A proposal names a
// destination; the path belongs to this machine and stands nowhere else. What is not
// listed cannot be reached.
type Destinations struct {
	Kind string `json:"kind"`
	// Publish and Review are folders, for outputs and for review packets. Their names must
	// differ, since both are the same kind of scope.
	Publish []Destination `json:"publish,omitempty"`
	Review  []Destination `json:"review,omitempty"`
	// Repositories are local git repositories.
	Repositories []Destination `json:"repositories,omitempty"`
}

// Destination is one place. Path is absolute, and no part of it is a symbolic link.
type Destination struct {
	Name string `json:"name"`
	Path string `json:"path"`
}

// LoadDestinations reads the destinations of a state folder. Without the file there are
// none. Whoever may write the file decides where results go: one that others than its
// owner may write, or that belongs to somebody else, is refused with outbox.bad_destinations.
func LoadDestinations(state string) (Destinations, error) {
	d := Destinations{Kind: DestinationsKind}
	found, err := pin.LoadOwned(filepath.Join(state, DestinationsFile), DestinationsKind, badDestinations, &d)
	if !found || err != nil {
		return d, err
	}
	return d, d.Check(state)
}

func badDestinations(what, where, remedy string) error {
	return reason.New(reason.OutboxBadDestinations, "the destinations of the outbox cannot be used: "+what, where, remedy)
}

// Check refuses, with outbox.bad_destinations, names and places that could be taken for
// one another, and places inside the state folder.
func (d Destinations) Check(state string) error {
	state, err := filepath.Abs(state)
	if err != nil {
		return badDestinations("the state folder has no path", state, "name it with --state")
	}
	states := []string{state}
	if real, err := filepath.EvalSymlinks(state); err == nil {
		states = append(states, real)
	}
	for _, list := range [][]Destination{append(append([]Destination(nil), d.Publish...), d.Review...), d.Repositories} {
		names, paths := map[string]bool{}, map[string]bool{}
		for _, at := range list {
			switch {
			case !plainName(at.Name):
				return badDestinations(fmt.Sprintf("%q is no plain name", at.Name), DestinationsFile, "use lower-case letters, digits, dots, underscores and hyphens")
			case names[at.Name]:
				return badDestinations("two have the name "+at.Name, DestinationsFile, "give each a name of its own")
			case !filepath.IsAbs(at.Path) || filepath.Clean(at.Path) != at.Path || at.Path == "/":
				return badDestinations(fmt.Sprintf("the path of %s is not absolute and clean", at.Name), DestinationsFile, "write the path as realpath prints it")
			case paths[at.Path]:
				return badDestinations("two have the same path", DestinationsFile, "give each use a folder of its own")
			}
			for _, s := range states {
				if at.Path == s || strings.HasPrefix(at.Path, s+"/") {
					return badDestinations(at.Name+" lies inside the state folder", DestinationsFile, "choose a place outside: the state folder holds what Writ knows")
				}
			}
			names[at.Name], paths[at.Path] = true, true
		}
	}
	return nil
}

// find returns the place that a scope names in a list.
func find(list []Destination, s capability.Scope) (Destination, error) {
	for _, d := range list {
		if d.Name == nameOf(s) {
			return d, nil
		}
	}
	return Destination{}, reason.New(reason.OutboxUnknownDestination, "the deployment has no destination "+s.String()+" for this", DestinationsFile,
		"name it there with its path, or propose one of those that it names")
}

// place is what the collision digest covers of where a destination is.
type place struct {
	Path string `json:"path"`
	// Repository is the path of a repository whose changes are shown.
	Repository string `json:"repository,omitempty"`
}

func (p place) digest() (canonical.Digest, error) { return canonical.DigestOf(p) }
