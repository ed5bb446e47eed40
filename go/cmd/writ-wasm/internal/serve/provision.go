package serve

import (
	"context"
	"fmt"
	"runtime/debug"
	"slices"

	"github.com/writ-runtime/writ/go/attestation"
	"github.com/writ-runtime/writ/go/canonical"
	"github.com/writ-runtime/writ/go/cmd/writ-wasm/internal/guest"
	"github.com/writ-runtime/writ/go/cmd/writ-wasm/internal/measure"
	"github.com/writ-runtime/writ/go/confine"
	"github.com/writ-runtime/writ/go/environment/wasm/worker/wire"
	"github.com/writ-runtime/writ/go/reason"
)

// provision checks the tool once more, compiles it, confines the process, and measures it. Compiling comes first
// because it needs executable memory; nothing of the tool runs in it.
func (s *Server) provision(ctx context.Context, p wire.Provision, module []byte) (*wire.Response, []byte, error) {
	if got := canonical.Sum(module); got != p.Digest {
		return nil, nil, reason.New(reason.PinDigestMismatch, fmt.Sprintf("the tool is not what was announced: announced %s, received %s", p.Digest, got), s.hello.Name, "")
	}
	limits := s.hello.Limits
	tool, err := guest.Compile(ctx, module, limits, p.CacheDir)
	if err != nil {
		return nil, nil, err
	}
	s.tool = tool
	// The heap is kept close to what the files of a guest need, since RLIMIT_DATA counts all of it.
	debug.SetMemoryLimit(limits.WorkspaceBytes + limits.InputBytes + limits.StdioBytes + 128<<20)
	if err := s.self.Hold(); err != nil {
		return nil, nil, err
	}
	var facts []attestation.Fact
	err = confine.Worker(confine.WorkerLimits{
		DataBytes:  limits.DataBytes(),
		CPUSeconds: limits.CPUSeconds,
		OpenFiles:  wire.ProcessOpenFiles,
		Threads:    wire.ProcessThreads,
	}, func(early confine.Early) error {
		var err error
		facts, err = s.self.UnderProbation(early)
		return err
	})
	if err != nil {
		return nil, nil, err
	}
	s.subject = measure.Subject{Name: s.hello.Name, Generation: s.order.Generation, Limits: limits, ModuleDigest: p.Digest, Imports: tool.Imports()}
	s.early = facts
	if !p.Resets {
		defer s.self.Release()
	}
	s.resets = p.Resets
	report, err := s.measure()
	if err != nil {
		return nil, nil, err
	}
	s.phase = provisioned
	return &wire.Response{Report: &report}, nil, nil
}

// measure makes the report of what the worker is now. What was measured under probation stands: rules and limits
// of the kernel can be tightened and not be taken back, and the final filter denies every call that opens anything.
func (s *Server) measure() (attestation.Report, error) {
	x := s.subject
	x.Inputs, x.Workspace = s.tree.Counts()
	return s.self.Confined(slices.Clone(s.early), x)
}
