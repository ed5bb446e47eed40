// Package wire is the protocol between the host and a confined worker: frames over one inherited socket pair,
// one request and one answer at a time. Both ends are built from this repository and pinned together; a frame
// that the other end would not have sent ends the conversation.
package wire

import (
	"github.com/writ-runtime/writ/go/attestation"
	"github.com/writ-runtime/writ/go/canonical"
	"github.com/writ-runtime/writ/go/reason"
)

// The descriptors that a worker inherits, beside /dev/null as 0 and 1 and a pipe for crash reports as 2.
const (
	FDBinary = 3 // its own sealed binary; closed by the worker once it is measured
	FDSocket = 4 // its end of the socket pair
	FDLock   = 5 // the locked lock file of its resource; held until it dies, never read or written
)

// Verb names a request.
type Verb string

// The verbs, in the only order in which a worker accepts them: hello, provision, put any number of times, run
// once, then list and read any number of times, and reset once, at last.
const (
	VerbHello     Verb = "hello"
	VerbProvision Verb = "provision"
	VerbPut       Verb = "put"
	VerbRun       Verb = "run"
	VerbList      Verb = "list"
	VerbRead      Verb = "read"
	VerbReset     Verb = "reset"
)

// Order says for which order a frame is: the bundle of an attempt, the attempt, and the generation of its fence. A worker
// serves one, from its hello on, and every frame carries it (B14).
type Order struct {
	Bundle     canonical.Digest `json:"bundle"`
	Attempt    string           `json:"attempt"`
	Generation uint64           `json:"generation"`
}

// Check refuses an order that leaves something out.
func (o Order) Check() error {
	if !o.Bundle.Valid() || o.Attempt == "" || o.Generation == 0 {
		return reason.New(reason.EnvironmentProtocol, "a request names no bundle, attempt or fence", o.Attempt, "this is a fault of the caller: report it")
	}
	return nil
}

// Request is the header of a frame from the host. Only the member that belongs to the verb is set.
type Request struct {
	Order     Order      `json:"order"`
	ID        uint64     `json:"id"`
	Verb      Verb       `json:"verb"`
	Hello     *Hello     `json:"hello,omitempty"`
	Provision *Provision `json:"provision,omitempty"`
	Put       *Put       `json:"put,omitempty"`
	Run       *Run       `json:"run,omitempty"`
	Read      *Read      `json:"read,omitempty"`
}

// Response is the header of a frame from the worker: the request's order and id, and the member that
// belongs to its verb, or a refusal and nothing else. Hello and put are answered with neither. Before a run is answered
// with its exit, it may be answered any number of times with what the guest has offered.
type Response struct {
	Order   Order               `json:"order"`
	ID      uint64              `json:"id"`
	Refusal *Refusal            `json:"refusal,omitempty"`
	Report  *attestation.Report `json:"report,omitempty"`
	Exit    *Exit               `json:"exit,omitempty"`
	Offered *Offered            `json:"offered,omitempty"`
	Listed  *Listed             `json:"listed,omitempty"`
	Left    *Left               `json:"left,omitempty"`
}

// Refusal carries a reason.Refusal.
type Refusal struct {
	Code   reason.Code `json:"code"`
	What   string      `json:"what"`
	Where  string      `json:"where,omitempty"`
	Remedy string      `json:"remedy,omitempty"`
}

// Hello binds the worker to one resource and one order, for its whole life.
type Hello struct {
	Name   string `json:"name"`
	Limits Limits `json:"limits"`
}

// Provision hands over the tool; the body is the module. The answer is the report, measured after confinement.
type Provision struct {
	Digest canonical.Digest `json:"digest"`
	// CacheDir is a directory of compiled code that the worker may use before it is confined; "" for none.
	CacheDir string `json:"cache_dir,omitempty"`
	// Resets says that a reset may be asked for: the descriptor of the worker's own status, through which it measures,
	// then stays open for it. A guest has no way to a descriptor of its worker.
	Resets bool `json:"resets,omitempty"`
}

// Left is what the answer to reset counted from inside: files and directories, and bytes, of inputs, workspace and
// what was offered, with or without a name.
type Left struct {
	Files int64 `json:"files"`
	Bytes int64 `json:"bytes"`
}

// Put adds a piece of an input file; the body is the piece. Pieces of one file come in order. Only the last one
// is answered, after the digest of the whole file was checked.
type Put struct {
	Mount string `json:"mount"`
	// Path is relative to the mount, with slashes.
	Path   string           `json:"path"`
	Offset int64            `json:"offset"`
	Last   bool             `json:"last"`
	Digest canonical.Digest `json:"digest"`
}

// Run starts the guest. The answer comes when it has ended; its body is standard output and then standard error.
type Run struct {
	Args []string `json:"args"`
	// Seed makes the guest's random source: equal seeds, equal bytes.
	Seed string `json:"seed"`
	// WallMillis is the time after which the guest is stopped.
	WallMillis int64 `json:"wall_millis"`
	// MaxOffer is how many bytes the guest may offer at once as a checkpoint, 0 where it may offer none.
	MaxOffer int64 `json:"max_offer"`
}

// Offered says that the guest has offered a checkpoint; the body is its payload.
type Offered struct {
	Bytes int64 `json:"bytes"`
}

// Exit says how a guest ended. Exactly one of the three kinds applies.
type Exit struct {
	Kind ExitKind `json:"kind"`
	// Code is the status of the guest, for ExitCode; 0 otherwise.
	Code uint32 `json:"code"`
	// Trap says what the guest ran into, for ExitTrap; bounded in length, without addresses.
	Trap string `json:"trap,omitempty"`
	// Limit names the limit that ended the guest or spoiled its outputs, for ExitLimit.
	Limit Limit `json:"limit,omitempty"`
	// Touched names every limit that the guest ran into: one that stopped it at once, then those of its files in
	// the order in which it met them, then memory.
	Touched []Limit `json:"touched,omitempty"`
	// StdoutBytes and StderrBytes say how much of the body is which.
	StdoutBytes int64 `json:"stdout_bytes"`
	StderrBytes int64 `json:"stderr_bytes"`
	// MemoryPages is the largest size of the guest's memory, in pages of 64 KiB.
	MemoryPages int64 `json:"memory_pages"`
	// WallMicros is the time that the guest took, in microseconds of the worker's clock. It is the only value
	// here that differs between equal runs.
	WallMicros int64 `json:"wall_micros"`
}

// ExitKind is the class of a guest's end.
type ExitKind string

// The kinds of end.
const (
	ExitCode  ExitKind = "code"
	ExitTrap  ExitKind = "trap"
	ExitLimit ExitKind = "limit"
)

// Listed is the answer to list: the body is the canonical JSON of a Listing.
type Listed struct {
	Entries int64 `json:"entries"`
}

// Listing is every entry of the workspace, by path.
type Listing struct {
	Entries []Entry `json:"entries"`
}

// Entry is one file or directory of the workspace; there are no other types.
type Entry struct {
	// Path is relative to the workspace, with slashes, valid UTF-8.
	Path string `json:"path"`
	Dir  bool   `json:"dir"`
	// Size is the number of bytes of a file, 0 for a directory.
	Size int64 `json:"size"`
}

// Read asks for at most Length bytes of a file; the body of the answer is what is there, short at the end.
type Read struct {
	Path   string `json:"path"`
	Offset int64  `json:"offset"`
	Length int64  `json:"length"`
}
