package admission

import (
	"errors"
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// errIrregular says that a path names a queue, a device or a folder.
var errIrregular = errors.New("it is not a regular file")

// ReadFile reads a regular file that a person named, or as much of one that is too
// large as it takes to see that: most and one byte more. A queue or a device is not
// waited for.
func ReadFile(path string, most int64) ([]byte, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, errIrregular
	}
	return io.ReadAll(io.LimitReader(f, most+1))
}
