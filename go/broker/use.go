package broker

import (
	"github.com/writ-runtime/writ/go/capability"
	"github.com/writ-runtime/writ/go/workorder"
)

// Use is one use of a token that somebody asks for.
type Use struct {
	// Fence is the one in force, from the journal and not from the asker.
	Fence       workorder.Fence
	Action      string
	Resource    capability.Scope
	Destination capability.Scope
	// Bytes is what the use would move.
	Bytes int64
	// Used is how often the action was used in the attempt so far.
	Used int64
	// NowUnixMilli is a recorded clock observation, in milliseconds since 1970.
	NowUnixMilli int64
}
