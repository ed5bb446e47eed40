package wire

import (
	"fmt"

	"github.com/writ-runtime/writ/go/reason"
)

// Limit names a limit of a guest.
type Limit string

// The limits, and what enforces each.
const (
	LimitWall           Limit = "wall"            // the worker's timer, and the host's a little later
	LimitCPU            Limit = "cpu"             // RLIMIT_CPU
	LimitMemory         Limit = "memory"          // the allocator of the guest's memory
	LimitStdio          Limit = "stdio"           // the writers behind standard output and error
	LimitWorkspaceBytes Limit = "workspace_bytes" // the workspace
	LimitWorkspaceFiles Limit = "workspace_files" // the workspace, files and directories together
	LimitFileBytes      Limit = "file_bytes"      // the workspace, one file
	LimitNameBytes      Limit = "name_bytes"      // the workspace, one path
	LimitDepth          Limit = "depth"           // the workspace, directories in directories
	LimitOpenFiles      Limit = "open_files"      // the workspace, descriptors of the guest
	LimitOffer          Limit = "offer"           // what is offered as a checkpoint
)

// AllLimits returns every limit.
func AllLimits() []Limit {
	return []Limit{LimitWall, LimitCPU, LimitMemory, LimitStdio, LimitWorkspaceBytes, LimitWorkspaceFiles, LimitFileBytes, LimitNameBytes, LimitDepth, LimitOpenFiles, LimitOffer}
}

// Spoils reports whether a guest that ran into the limit cannot have produced what it meant to, whatever its own
// status says. A refused growth of memory is an exception: a program may ask for more and do with less. So is a
// checkpoint that is too large: it is no output, and the work goes on without it.
func (l Limit) Spoils() bool { return l != LimitMemory && l != LimitOffer && l != "" }

// Code returns the registered reason for ending by the limit.
func (l Limit) Code() reason.Code {
	switch l {
	case LimitWall:
		return reason.EnvironmentLimitWall
	case LimitCPU:
		return reason.EnvironmentLimitCpu
	case LimitMemory:
		return reason.EnvironmentLimitMemory
	case LimitStdio:
		return reason.EnvironmentLimitStdio
	case LimitWorkspaceBytes, LimitFileBytes, LimitOffer:
		return reason.EnvironmentLimitOutput
	default:
		return reason.EnvironmentLimitFiles
	}
}

// Limits bound one worker and its guest. The zero value of a field is refused; Defaults has one for each.
type Limits struct {
	MemoryPages    int64 `json:"memory_pages"`    // of the guest, 64 KiB each, at most 65536
	CPUSeconds     int64 `json:"cpu_seconds"`     // of the worker, from its confinement on
	StdioBytes     int64 `json:"stdio_bytes"`     // of standard output and error together
	WorkspaceBytes int64 `json:"workspace_bytes"` // of all files of the workspace
	WorkspaceFiles int64 `json:"workspace_files"` // files and directories of the workspace
	FileBytes      int64 `json:"file_bytes"`      // of one file of the workspace
	NameBytes      int64 `json:"name_bytes"`      // of one path in the workspace
	Depth          int64 `json:"depth"`           // of a path in the workspace, in names
	OpenFiles      int64 `json:"open_files"`      // of the guest at a time
	InputBytes     int64 `json:"input_bytes"`     // of all inputs
	InputFiles     int64 `json:"input_files"`     // files of all inputs
}

// Defaults returns limits for a small tool.
func Defaults() Limits {
	return Limits{
		MemoryPages: 4096, CPUSeconds: 60, StdioBytes: 256 << 10,
		WorkspaceBytes: 64 << 20, WorkspaceFiles: 1024, FileBytes: 64 << 20, NameBytes: 1024, Depth: 16, OpenFiles: 64,
		InputBytes: 256 << 20, InputFiles: 10_000,
	}
}

// ceilings are the largest limits that a worker takes.
func ceilings() Limits {
	return Limits{
		MemoryPages: 65536, CPUSeconds: 86_400, StdioBytes: 16 << 20,
		WorkspaceBytes: 4 << 30, WorkspaceFiles: 1_000_000, FileBytes: 4 << 30, NameBytes: 4096, Depth: 128, OpenFiles: 4096,
		InputBytes: 4 << 30, InputFiles: 1_000_000,
	}
}

// Check refuses a limit that is not above zero or larger than a worker takes (environment.unsupported).
func (l Limits) Check() error {
	top := ceilings().rows()
	for i, r := range l.rows() {
		if r.value <= 0 || r.value > top[i].value {
			return reason.New(reason.EnvironmentUnsupported, fmt.Sprintf("limit %s is %d, outside 1 to %d", r.name, r.value, top[i].value),
				"limits", "choose a limit within that range")
		}
	}
	return nil
}

type limitRow struct {
	name  string
	value int64
}

func (l Limits) rows() []limitRow {
	return []limitRow{
		{"memory_pages", l.MemoryPages}, {"cpu_seconds", l.CPUSeconds}, {"stdio_bytes", l.StdioBytes},
		{"workspace_bytes", l.WorkspaceBytes}, {"workspace_files", l.WorkspaceFiles}, {"file_bytes", l.FileBytes},
		{"name_bytes", l.NameBytes}, {"depth", l.Depth}, {"open_files", l.OpenFiles},
		{"input_bytes", l.InputBytes}, {"input_files", l.InputFiles},
	}
}

// DataBytes returns the limit of private writable memory of the whole worker in bytes: what the guest and its
// files may take, files twice since a growing one is copied, and room for the worker itself.
func (l Limits) DataBytes() int64 {
	const room = 512 << 20
	return l.MemoryPages<<16 + 2*(l.WorkspaceBytes+l.InputBytes+l.StdioBytes) + room
}
