package admission

import (
	"github.com/writ-runtime/writ/go/attemptbundle"
	"github.com/writ-runtime/writ/go/reason"
)

// refuseUnsupported refuses what the schema has room for and this release cannot carry
// out. An order is carried out as it stands or not at all.
func (o *order) refuseUnsupported() error {
	w := o.order
	if w.Environment.Reset == attemptbundle.ResetBeforeDestroy && w.Retention != nil && w.Retention.Keep {
		return o.at("/environment/reset", reason.New(reason.EnvironmentUnsupported, "the order resets what it wants to keep", "/environment/reset",
			"leave out environment.reset or retention.keep"))
	}
	for _, part := range []struct {
		asked         bool
		pointer, what string
	}{
		{w.Limits != nil && w.Limits.Repairs > 0, "/limits/repairs", "repairs of a result"},
	} {
		if part.asked {
			return o.at(part.pointer, reason.New(reason.EnvironmentUnsupported, "this release does not support "+part.what, part.pointer, "leave it out"))
		}
	}
	return nil
}
