package admission

import (
	"context"
	"path/filepath"

	"github.com/writ-runtime/writ/go/canonical"
	"github.com/writ-runtime/writ/go/pin"
	"github.com/writ-runtime/writ/go/policy"
	"github.com/writ-runtime/writ/go/reason"
)

// DeploymentKind is the registered kind of Deployment.
const DeploymentKind = "writ.deployment.v1"

// DeploymentFile is where the owner of a state folder names its deployment.
const DeploymentFile = "deployment.yaml"

// defaultDeployment is that of a state folder whose owner names none. It is the one that
// permits least.
const defaultDeployment = "local"

// Deployment names the deployment of the pinned policies that a state folder is of. What
// that one permits stands in them.
type Deployment struct {
	Kind string `json:"kind"`
	Name string `json:"name"`
}

// LoadDeployment reads which deployment a state folder is of. Whoever may write the file
// decides what the work there may do: one that others than its owner may write, or that
// belongs to somebody else, is refused with deployment.bad_choice.
func LoadDeployment(state string) (Deployment, error) {
	d := Deployment{Kind: DeploymentKind, Name: defaultDeployment}
	_, err := pin.LoadOwned(filepath.Join(state, DeploymentFile), DeploymentKind, func(what, where, remedy string) error {
		return reason.New(reason.DeploymentBadChoice, "which deployment this is cannot be told: "+what, where, remedy)
	}, &d)
	return d, err
}

// resolveFacts finds the deployment of the moment, and what Writ itself knows of the order
// that policies may ask for.
func (a *Admission) resolveFacts(_ context.Context, o *order) error {
	deployment, err := LoadDeployment(a.State)
	if err != nil {
		return unreadable{err}
	}
	o.deployment, o.facts = deployment.Name, policy.Facts{AdapterDigest: o.adapter.Digest}
	if o.known == nil || o.known.Raised == nil {
		return nil
	}
	shown := o.known.Raised.Evidence
	o.facts.ModeEvidenceCurrent = shown.Tool == o.tool.Digest && shown.Adapter == o.adapter.Digest
	o.facts.ModeEvidence, err = canonical.DigestOf(shown)
	return err
}
