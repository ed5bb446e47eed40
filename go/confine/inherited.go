package confine

import (
	"fmt"
	"math"

	"golang.org/x/sys/unix"
)

// CloseInherited marks every descriptor above the standard streams close-on-exec. A host calls it first thing
// in main: whoever started it may have leaked descriptors into it, and they must not reach a child.
func CloseInherited() error {
	if err := unix.CloseRange(3, math.MaxUint32, unix.CLOSE_RANGE_CLOEXEC); err != nil {
		return fmt.Errorf("mark inherited descriptors close-on-exec: %w", err)
	}
	return nil
}
