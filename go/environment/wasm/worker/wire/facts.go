package wire

import "github.com/writ-runtime/writ/go/attestation"

// Provider is the provider's name in reports, expectations and the registry of facts.
const Provider = "wasm"

// The facts that a worker measures. schemas/attestation-facts.v1.json says how, and how each is compared.
const (
	FactResourceName     = "resource.name"
	FactGeneration       = "resource.generation"
	FactWorkerDigest     = "worker.digest"
	FactModuleDigest     = "module.digest"
	FactModuleImports    = "module.imports"
	FactKernel           = "host.kernel"
	FactUID              = "process.uid"
	FactPIDNamespace     = "process.pid_namespace"
	FactNoNewPrivs       = "process.no_new_privs"
	FactCapEffective     = "process.capabilities_effective"
	FactCapPermitted     = "process.capabilities_permitted"
	FactCapInheritable   = "process.capabilities_inheritable"
	FactCapAmbient       = "process.capabilities_ambient"
	FactEnvironment      = "process.environment"
	FactDescriptors      = "process.descriptors"
	FactSeccompMode      = "seccomp.mode"
	FactSeccompFilters   = "seccomp.filters"
	FactLandlockABI      = "landlock.abi"
	FactLandlockOpenRoot = "landlock.open_root"
	FactDenied           = "denied.system_calls"
	FactCredentials      = "credentials.absent"
	FactLimitData        = "limit.data_bytes"
	FactLimitCPU         = "limit.cpu_seconds"
	FactLimitOpenFiles   = "limit.open_files"
	FactLimitThreads     = "limit.threads"
	FactLimitFileSize    = "limit.file_size_bytes"
	FactLimitCore        = "limit.core_bytes"
	FactGuestMemory      = "guest.memory_pages"
	FactGuestStdio       = "guest.stdio_bytes"
	FactGuestWorkspace   = "guest.workspace_bytes"
	FactGuestFiles       = "guest.workspace_files"
	FactGuestFileBytes   = "guest.file_bytes"
	FactGuestNameBytes   = "guest.name_bytes"
	FactGuestDepth       = "guest.depth"
	FactGuestOpenFiles   = "guest.open_files"
	FactGuestInputBytes  = "guest.input_bytes"
	FactGuestInputFiles  = "guest.input_files"
	FactGuestClock       = "guest.clock"
	FactGuestRandom      = "guest.random"
	FactGuestEnvironment = "guest.environment"
	FactInputs           = "inputs.entries"
	FactWorkspace        = "workspace.entries"
)

// What a confined worker is expected to measure, where that does not depend on the request.
const (
	ProcessOpenFiles = 16
	ProcessThreads   = 64
	GuestClock       = "fixed at 2000-01-01T00:00:00Z"
	GuestRandom      = "seeded"
	GuestEnvironment = "PWD=/work"
	NoCapabilities   = "0000000000000000"
)

// Descriptors returns the open descriptors of a confined worker, number and type.
func Descriptors() []string {
	return []string{"0 null", "1 null", "2 pipe", "4 socket", "5 file", "6 eventpoll", "7 eventfd"}
}

// DeniedCalls returns what a confined worker tries in vain, and the answers.
func DeniedCalls() []string {
	names := []string{"bpf", "connect", "execve", "execveat", "fork", "io_uring_setup", "keyctl", "kill", "memfd_create", "mmap_exec", "mount", "mprotect_exec", "open", "openat",
		"pidfd_open", "process_vm_readv", "ptrace", "setns", "setuid", "socket", "unshare"}
	for i := range names {
		names[i] += " EPERM"
	}
	return names
}

// GuestLimits returns the limits of a guest as facts.
func GuestLimits(l Limits) []attestation.Fact {
	return []attestation.Fact{
		attestation.Integer(FactGuestMemory, l.MemoryPages),
		attestation.Integer(FactGuestStdio, l.StdioBytes),
		attestation.Integer(FactGuestWorkspace, l.WorkspaceBytes),
		attestation.Integer(FactGuestFiles, l.WorkspaceFiles),
		attestation.Integer(FactGuestFileBytes, l.FileBytes),
		attestation.Integer(FactGuestNameBytes, l.NameBytes),
		attestation.Integer(FactGuestDepth, l.Depth),
		attestation.Integer(FactGuestOpenFiles, l.OpenFiles),
		attestation.Integer(FactGuestInputBytes, l.InputBytes),
		attestation.Integer(FactGuestInputFiles, l.InputFiles),
	}
}
