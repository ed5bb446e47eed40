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

// Attest records what the environment measured of itself, once more compared with what
// the provider expects and the attempt bundle orders.
type Attest struct {
	Expected attestation.Expectation
	Report   attestation.Report
}

func (c Attest) decide(d *decision) error {
	if _, err := d.kernel.Accept(d.state, c.Expected, c.Report); err != nil {
		return err
	}
	g, err := report("EnvironmentAttestation", c.Report)
	if err != nil {
		return err
	}
	return d.of("environment.attested", c.Report, g)
}

// Accept compares what an environment measured of itself with what the provider expects
// and the attempt bundle orders. The error is a *reason.Refusal that names each fact that
// differs.
func (k Kernel) Accept(s State, e attestation.Expectation, r attestation.Report) (attestation.Accepted, error) {
	return k.facts.Accept(Ordered(s), e, r, s.Resource)
}

// Ordered is what the attempt bundle fixes of the attempt's environment, under the names
// that the registry of facts has for it. A number that a bundle does not bound never
// gets as far as this.
func Ordered(s State) attestation.Ordered {
	o := attestation.Ordered{}
	if s.Bundle == nil {
		return o
	}
	b := s.Bundle.Bundle()
	o.OrderText("environment.resource", s.Resource)
	o.OrderInteger("fence.generation", int64(b.Fence.Generation))
	o.OrderText("environment.root", string(b.Environment.Root))
	o.OrderText("environment.network", b.Environment.Network)
	for _, tool := range b.Pins.Tools {
		if tool.Name == b.Execution.Tool {
			o.OrderText("execution.tool", string(tool.Digest))
		}
	}
	l := b.Environment.Limits
	o.OrderInteger("environment.limits.memory_bytes", l.MemoryBytes)
	o.OrderInteger("environment.limits.wall_ms", l.WallMillis)
	o.OrderInteger("environment.limits.cpu_ms", l.CPUMillis)
	o.OrderInteger("environment.limits.processes", l.Processes)
	o.OrderInteger("environment.limits.files", l.Files)
	o.OrderInteger("environment.limits.disk_bytes", l.DiskBytes)
	o.OrderInteger("environment.limits.stdout_bytes", l.StdoutBytes)
	return o
}
