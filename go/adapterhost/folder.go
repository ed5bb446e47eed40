package adapterhost

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/writ-runtime/writ/go/confine"
)

// folderPrefix begins the names of socket folders. The number and the start of the process that made one follow, so
// that what a killed host left behind can be told from what is in use.
const folderPrefix = "writ-a."

// maxFolder is the longest base folder in bytes: a socket's path has to fit into 107, and go-plugin adds names.
const maxFolder = 48

// newFolder makes a private folder for the sockets of one start.
func newFolder(base string) (string, error) {
	if base == "" {
		base = os.TempDir()
	}
	if len(base) > maxFolder {
		return "", fmt.Errorf("the path %s is longer than %d bytes, too long for sockets", base, maxFolder)
	}
	start, err := confine.StartTime(os.Getpid())
	if err != nil {
		return "", err
	}
	dir, err := os.MkdirTemp(base, fmt.Sprintf("%s%d.%x.", folderPrefix, os.Getpid(), start))
	if err != nil {
		return "", fmt.Errorf("make socket folder: %w", err)
	}
	return dir, nil
}

// Sweep removes the socket folders that killed hosts left in base (empty for the system's folder for temporary
// files). Those of living hosts stay. A host calls it once when it starts.
func Sweep(base string) error {
	if base == "" {
		base = os.TempDir()
	}
	entries, err := os.ReadDir(base)
	if err != nil {
		return fmt.Errorf("sweep socket folders: %w", err)
	}
	var errs []error
	for _, e := range entries {
		if e.IsDir() && abandoned(e.Name()) {
			errs = append(errs, os.RemoveAll(filepath.Join(base, e.Name())))
		}
	}
	return errors.Join(errs...)
}

// abandoned reports whether a name is that of a socket folder whose maker is gone.
func abandoned(name string) bool {
	rest, ok := strings.CutPrefix(name, folderPrefix)
	parts := strings.Split(rest, ".")
	if !ok || len(parts) != 3 {
		return false
	}
	pid, err := strconv.Atoi(parts[0])
	if err != nil || pid <= 0 {
		return false
	}
	made, err := strconv.ParseUint(parts[1], 16, 64)
	if err != nil {
		return false
	}
	start, err := confine.StartTime(pid)
	return errors.Is(err, os.ErrNotExist) || err == nil && start != made
}
