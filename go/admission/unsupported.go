package admission

import "github.com/writ-runtime/writ/go/reason"

// refuseUnsupported refuses what the schema has room for and this release cannot carry
// out. An order is carried out as it stands or not at all.
func (o *order) refuseUnsupported() error {
	w := o.order
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
