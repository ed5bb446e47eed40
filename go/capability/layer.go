package capability

// Layer names one of those who must all agree before anything is allowed.
type Layer string

// The layers.
const (
	// ConstitutionLayer is what holds in every deployment and for every role.
	ConstitutionLayer Layer = "constitution"
	// RoleLayer is the ceiling of the role.
	RoleLayer Layer = "role"
	// WorkOrderLayer is what the work order itself asks for.
	WorkOrderLayer Layer = "work_order"
	// ModeLayer is what policy permits under the mode.
	ModeLayer Layer = "mode"
	// DeploymentLayer is what this deployment permits.
	DeploymentLayer Layer = "deployment"
	// SupportLayer is what environment and executor can enforce.
	SupportLayer Layer = "support"
	// BrokerLayer is what the broker is willing to issue.
	BrokerLayer Layer = "broker"
)

// Layers returns every layer, in the order in which they are asked and explained.
func Layers() []Layer {
	return []Layer{ConstitutionLayer, RoleLayer, WorkOrderLayer, ModeLayer, DeploymentLayer, SupportLayer, BrokerLayer}
}

// PolicyLayers returns the layers that Rego policies answer for.
func PolicyLayers() []Layer {
	return []Layer{ConstitutionLayer, RoleLayer, ModeLayer, DeploymentLayer}
}

// Valid reports whether l is a layer.
func (l Layer) Valid() bool {
	switch l {
	case ConstitutionLayer, RoleLayer, WorkOrderLayer, ModeLayer, DeploymentLayer, SupportLayer, BrokerLayer:
		return true
	}
	return false
}
