package measure

import (
	"fmt"
	"strconv"

	"golang.org/x/sys/unix"

	"github.com/writ-runtime/writ/go/attestation"
	"github.com/writ-runtime/writ/go/canonical"
	"github.com/writ-runtime/writ/go/confine"
	"github.com/writ-runtime/writ/go/environment/wasm/worker/wire"
)

// Subject is what the worker knows of its resource and its tool.
type Subject struct {
	Name         string
	Generation   uint64
	Limits       wire.Limits
	ModuleDigest canonical.Digest
	Imports      []string
	// Inputs and Workspace count the entries that the guest would see now.
	Inputs, Workspace int64
}

// UnderProbation measures what needs a system call that the final filter denies.
func (s *Self) UnderProbation(early confine.Early) ([]attestation.Fact, error) {
	descriptors, err := s.descriptors()
	if err != nil {
		return nil, err
	}
	facts := []attestation.Fact{
		attestation.Integer(wire.FactUID, int64(unix.Getuid())),
		attestation.List(wire.FactDescriptors, descriptors...),
		attestation.Integer(wire.FactLandlockABI, int64(early.LandlockABI)),
		attestation.Text(wire.FactLandlockOpenRoot, early.OpenRoot),
		attestation.List(wire.FactDenied, denied()...),
		attestation.Flag(wire.FactCredentials, len(s.environment) == 0 && len(descriptors) == len(wire.Descriptors())),
	}
	for _, l := range []struct {
		name     string
		resource int
		less     int64
	}{
		{wire.FactLimitData, unix.RLIMIT_DATA, 0},
		{wire.FactLimitCPU, unix.RLIMIT_CPU, early.CPUSecondsUsed},
		{wire.FactLimitOpenFiles, unix.RLIMIT_NOFILE, 0},
		{wire.FactLimitThreads, unix.RLIMIT_NPROC, 0},
		{wire.FactLimitFileSize, unix.RLIMIT_FSIZE, 0},
		{wire.FactLimitCore, unix.RLIMIT_CORE, 0},
	} {
		var r unix.Rlimit
		if err := unix.Getrlimit(l.resource, &r); err != nil {
			return nil, fmt.Errorf("read %s: %w", l.name, err)
		}
		// An unlimited resource shows as the largest integer that documents carry.
		facts = append(facts, attestation.Integer(l.name, int64(min(r.Cur, canonical.MaxInteger))-l.less))
	}
	return facts, unix.Close(s.fds)
}

// Confined measures the rest after the final filter, and returns the report. It may be called again until Release.
func (s *Self) Confined(facts []attestation.Fact, x Subject) (attestation.Report, error) {
	status, err := s.readStatus()
	if err != nil {
		return attestation.Report{}, err
	}
	for name, field := range map[string]string{wire.FactCapEffective: "CapEff", wire.FactCapPermitted: "CapPrm", wire.FactCapInheritable: "CapInh", wire.FactCapAmbient: "CapAmb"} {
		facts = append(facts, attestation.Text(name, status[field]))
	}
	facts = append(facts, attestation.Flag(wire.FactNoNewPrivs, status["NoNewPrivs"] == "1"))
	for name, field := range map[string]string{wire.FactSeccompMode: "Seccomp", wire.FactSeccompFilters: "Seccomp_filters"} {
		n, err := strconv.ParseInt(status[field], 10, 64)
		if err != nil {
			return attestation.Report{}, fmt.Errorf("read %s from own status: %w", field, err)
		}
		facts = append(facts, attestation.Integer(name, n))
	}
	facts = append(facts,
		attestation.Text(wire.FactResourceName, x.Name),
		attestation.Integer(wire.FactGeneration, int64(x.Generation)),
		attestation.Text(wire.FactWorkerDigest, string(s.digest)),
		attestation.Text(wire.FactModuleDigest, string(x.ModuleDigest)),
		attestation.List(wire.FactModuleImports, x.Imports...),
		attestation.Text(wire.FactKernel, s.kernel),
		attestation.Text(wire.FactPIDNamespace, s.pidNamespace),
		attestation.List(wire.FactEnvironment, s.environment...),
		attestation.Text(wire.FactGuestClock, wire.GuestClock),
		attestation.Text(wire.FactGuestRandom, wire.GuestRandom),
		attestation.List(wire.FactGuestEnvironment, wire.GuestEnvironment),
		attestation.Integer(wire.FactInputs, x.Inputs),
		attestation.Integer(wire.FactWorkspace, x.Workspace),
	)
	return attestation.NewReport(wire.Provider, append(facts, wire.GuestLimits(x.Limits)...)), nil
}
