package kernel

import (
	"github.com/writ-runtime/writ/go/attestation"
	"github.com/writ-runtime/writ/go/canonical"
	"github.com/writ-runtime/writ/go/lifecycle"
)

// provisional are the states of an environment from which it can fail, be lost or be
// withdrawn.
//
//writ:immutable a list of registered states
var provisional = []lifecycle.State{"requested", "provisioned", "attested", "materialized", "active", "freezing"}

// Requested is the body of environment.requested.
type Requested struct {
	Manifest canonical.Digest `json:"manifest"`
	// Resource is the name that everything living for the environment bears.
	Resource string `json:"resource"`
}

// Attest records what the environment measured of itself. It is compared with what the
// provider expects once more here; that the expectation follows from the manifest is the
// provider's word.
type Attest struct {
	Expected attestation.Expectation
	Report   attestation.Report
}

func (c Attest) decide(d *decision) error {
	if _, err := d.kernel.facts.Accept(c.Expected, c.Report, d.state.Resource); err != nil {
		return err
	}
	g, err := report("EnvironmentAttestation", c.Report)
	if err != nil {
		return err
	}
	return d.of("environment.attested", c.Report, g)
}
