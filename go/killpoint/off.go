//go:build !killpoints

package killpoint

import (
	"github.com/writ-runtime/writ/go/lifecycle"
	"github.com/writ-runtime/writ/go/operation"
)

// Turn is a point of a turn, which is named by what its events stand for. The identity is
// that of its batch.
func Turn(string, []lifecycle.Event, operation.Key) {}

// Operation is a point of one operation.
func Operation(string, operation.Key) {}

// Reduced is the point after an event was reduced.
func Reduced(lifecycle.Event) {}
