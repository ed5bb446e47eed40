package main

import (
	"os"
	"path/filepath"

	"github.com/writ-runtime/writ/go/reason"
)

// findDist returns the folder of the release set: what --dist or WRIT_DIST names, else
// what was built with this program and stands in its runfiles or beside it.
func (c *command) findDist() (string, error) {
	if c.dist != "" {
		return c.dist, nil
	}
	if named := os.Getenv("WRIT_DIST"); named != "" {
		return c.path(named), nil
	}
	var places []string
	for _, runfiles := range []string{os.Getenv("RUNFILES_DIR"), os.Getenv("TEST_SRCDIR")} {
		if runfiles != "" {
			places = append(places, filepath.Join(runfiles, "writ", "dist"), filepath.Join(runfiles, "_main", "dist"))
		}
	}
	if self, err := os.Executable(); err == nil {
		places = append(places,
			filepath.Join(self+".runfiles", "writ", "dist"), filepath.Join(self+".runfiles", "_main", "dist"),
			filepath.Join(filepath.Dir(self), "dist"))
	}
	for _, place := range places {
		if _, err := os.Stat(filepath.Join(place, "adapters.lock.json")); err == nil {
			return place, nil
		}
	}
	return "", reason.New(reason.PinUnreadable, "the release set was not found: adapters, tools and policies with their lock files", "",
		"run through `./bazelw run //:writ`, or make it with `go run ./tools/dist -o DIR` and set WRIT_DIST=DIR")
}
