package worker

import (
	"fmt"
	"os"

	"github.com/writ-runtime/writ/go/attestation"
	"github.com/writ-runtime/writ/go/canonical"
	"github.com/writ-runtime/writ/go/environment/wasm/worker/wire"
	"github.com/writ-runtime/writ/schemas"
)

// Provider is the name under which the worker's facts are registered.
const Provider = wire.Provider

// Expected is what the host knows of a worker before it measures itself.
type Expected struct {
	Name         string
	Generation   uint64
	WorkerDigest canonical.Digest
	ModuleDigest canonical.Digest
	Limits       Limits
}

// Expectation returns what the worker's report has to say, from what was asked for and from what this host is: a
// worker stays in the host's process namespace and user, and has nothing else of the host.
func Expectation(x Expected) (attestation.Expectation, error) {
	pidNamespace, err := os.Readlink("/proc/self/ns/pid")
	if err != nil {
		return attestation.Expectation{}, fmt.Errorf("read own process namespace: %w", err)
	}
	l := x.Limits
	facts := []attestation.Fact{
		attestation.Text(wire.FactResourceName, x.Name),
		attestation.Integer(wire.FactGeneration, int64(x.Generation)),
		attestation.Text(wire.FactWorkerDigest, string(x.WorkerDigest)),
		attestation.Text(wire.FactModuleDigest, string(x.ModuleDigest)),
		attestation.Integer(wire.FactUID, int64(os.Getuid())),
		attestation.Text(wire.FactPIDNamespace, pidNamespace),
		attestation.Flag(wire.FactNoNewPrivs, true),
		attestation.Text(wire.FactCapEffective, wire.NoCapabilities),
		attestation.Text(wire.FactCapPermitted, wire.NoCapabilities),
		attestation.Text(wire.FactCapInheritable, wire.NoCapabilities),
		attestation.Text(wire.FactCapAmbient, wire.NoCapabilities),
		attestation.List(wire.FactEnvironment),
		attestation.List(wire.FactDescriptors, wire.Descriptors()...),
		attestation.Integer(wire.FactSeccompMode, 2),
		attestation.Integer(wire.FactSeccompFilters, 2),
		attestation.Integer(wire.FactLandlockABI, 1),
		attestation.Text(wire.FactLandlockOpenRoot, "EACCES"),
		attestation.List(wire.FactDenied, wire.DeniedCalls()...),
		attestation.Flag(wire.FactCredentials, true),
		attestation.Integer(wire.FactLimitData, l.DataBytes()),
		attestation.Integer(wire.FactLimitCPU, l.CPUSeconds),
		attestation.Integer(wire.FactLimitOpenFiles, wire.ProcessOpenFiles),
		attestation.Integer(wire.FactLimitThreads, wire.ProcessThreads),
		attestation.Integer(wire.FactLimitFileSize, 0),
		attestation.Integer(wire.FactLimitCore, 0),
		attestation.Text(wire.FactGuestClock, wire.GuestClock),
		attestation.Text(wire.FactGuestRandom, wire.GuestRandom),
		attestation.List(wire.FactGuestEnvironment, wire.GuestEnvironment),
		attestation.Integer(wire.FactInputs, 0),
		attestation.Integer(wire.FactWorkspace, 0),
	}
	return attestation.NewExpectation(Provider, append(facts, wire.GuestLimits(l)...)), nil
}

// Facts returns the registry of facts that reports are held against.
func Facts() (attestation.Table, error) {
	data, err := schemas.FS.ReadFile("attestation-facts.v1.json")
	if err != nil {
		return attestation.Table{}, fmt.Errorf("read registry of attestation facts: %w", err)
	}
	return attestation.ParseTable(data)
}
