package admission

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"

	"github.com/writ-runtime/writ/go/artifact"
	"github.com/writ-runtime/writ/go/attemptbundle"
	"github.com/writ-runtime/writ/go/canonical"
	"github.com/writ-runtime/writ/go/capability"
	"github.com/writ-runtime/writ/go/environment"
	"github.com/writ-runtime/writ/go/executor"
	"github.com/writ-runtime/writ/go/journal"
	"github.com/writ-runtime/writ/go/kernel"
	"github.com/writ-runtime/writ/go/outbox"
	"github.com/writ-runtime/writ/go/pin"
	"github.com/writ-runtime/writ/go/policy"
	"github.com/writ-runtime/writ/go/protocol"
	"github.com/writ-runtime/writ/go/reason"
	"github.com/writ-runtime/writ/go/schema"
	"github.com/writ-runtime/writ/go/workorder"
)

// The media types of the documents that admission keeps.
const (
	DecisionMediaType = "application/vnd.writ.decision+json"
	SchemaMediaType   = "application/schema+json"
	inputMediaType    = "application/json"
	packageMediaType  = "application/vnd.writ.package+json"
)

// The defaults of what a work order leaves open.
const (
	defaultExecutor     = "reference-local"
	defaultCodeClass    = "candidate"
	defaultMemoryBytes  = 512 << 20
	defaultWallMillis   = 60_000
	defaultFiles        = 1024
	defaultDiskBytes    = 64 << 20
	stdoutBytes         = 256 << 10
	defaultOutputCount  = 64
	defaultCancelMillis = 10_000
	defaultTries        = 3
	defaultRetries      = 2
)

// order is a work order with everything found that it names.
type order struct {
	document *schema.Document
	// recorded is the order as it was submitted; nil for one that is only now.
	recorded *kernel.Submitted
	order    workorder.WorkOrder
	origin   string

	// known is where a recorded order stands; nil for one that is only now.
	known *kernel.State

	provider environment.Provider
	manifest attemptbundle.EnvironmentManifest
	adapter  pin.Entry
	executor executor.Capabilities
	tool     pin.Entry
	sources  Sources
	inputs   protocol.InputManifest
	outputs  protocol.OutputPolicy
	schema   []byte
	requests []capability.Request
	// proposals are those of the order with everything filled in, sorted by purpose.
	proposals []workorder.Proposal
	budget    workorder.Budget
	// checkpoint says which checkpoints are taken, from is the one that the attempt starts from.
	checkpoint attemptbundle.CheckpointPolicy
	from       *attemptbundle.StartingPoint
	// deployment is the name of the deployment of the moment, facts what Writ knows of the order.
	deployment string
	facts      policy.Facts
	// price is what a run of the tool costs, nil if nobody has said or no money is counted.
	price *workorder.Money

	role, context, prompt, requested, schemaDigest canonical.Digest
	// blobs carry the packages that the digests name.
	blobs []journal.Blob
}

// resolve finds everything that a work order names. No event is recorded; documents may
// already be kept under their digests.
func (a *Admission) resolve(ctx context.Context, doc *schema.Document, origin string, known *kernel.State) (*order, error) {
	o := &order{document: doc, origin: origin, known: known}
	if known != nil {
		o.recorded = &known.Order
	}
	if err := doc.Decode(&o.order); err != nil {
		return nil, err
	}
	if err := attemptbundle.CheckSecrets("the work order", doc.Value()); err != nil {
		return nil, err
	}
	if err := o.refuseUnsupported(); err != nil {
		return nil, err
	}
	o.fillIn()
	for _, step := range []func(context.Context, *order) error{
		a.resolveEnvironment, a.resolvePins, a.resolveFacts, a.resolveBudget, a.resolveOutputs, a.resolveInputs, a.resolveCheckpoint, a.resolveProposals, a.resolveRequests, a.resolvePackages,
	} {
		if err := step(ctx, o); err != nil {
			return nil, err
		}
	}
	return o, nil
}

// fillIn sets what the order leaves open.
func (o *order) fillIn() {
	w := &o.order
	if w.Executor == "" {
		w.Executor = defaultExecutor
	}
	if w.CodeClass == "" || w.CodeClass == "reviewed" {
		// Only an allowlist of reviewed code makes code reviewed, and this release has
		// none: the order's own claim counts for nothing (E4).
		w.CodeClass = defaultCodeClass
	}
	l := &w.Environment.Limits
	l.MemoryBytes = or(l.MemoryBytes, defaultMemoryBytes)
	l.WallMillis = or(l.WallMillis, defaultWallMillis)
	if w.Limits != nil && w.Limits.WallMillis > 0 {
		l.WallMillis = min(l.WallMillis, w.Limits.WallMillis)
	}
	if w.Environment.Reset == "" {
		w.Environment.Reset = attemptbundle.NoReset
	}
	l.CPUMillis = or(l.CPUMillis, l.WallMillis)
	l.Processes = or(l.Processes, 1)
	l.Files = or(l.Files, defaultFiles)
	l.DiskBytes = or(l.DiskBytes, defaultDiskBytes)
	w.Outputs.MaxCount = or(w.Outputs.MaxCount, defaultOutputCount)
	w.Outputs.MaxBytes = or(w.Outputs.MaxBytes, l.DiskBytes)
	w.CancellationDeadlineMillis = or(w.CancellationDeadlineMillis, defaultCancelMillis)
	o.budget = workorder.Budget{Retries: defaultRetries, WallMillis: l.WallMillis}
	if b := w.Limits; b != nil {
		o.budget.Calls, o.budget.Repairs, o.budget.Tokens, o.budget.Money = b.Calls, b.Repairs, b.Tokens, b.Money
		if b.Retries != nil {
			o.budget.Retries = *b.Retries
		}
	}
}

func or(value, fallback int64) int64 {
	if value == 0 {
		return fallback
	}
	return value
}

func (a *Admission) resolveEnvironment(_ context.Context, o *order) (err error) {
	if o.provider, err = a.Providers.Find(o.order.Environment.Provider); err != nil {
		return o.at("/environment/provider", err)
	}
	l := o.order.Environment.Limits
	o.manifest, err = o.provider.Manifest(attemptbundle.Limits{
		MemoryBytes: l.MemoryBytes, WallMillis: l.WallMillis, CPUMillis: l.CPUMillis, Processes: l.Processes,
		Files: l.Files, DiskBytes: l.DiskBytes, StdoutBytes: stdoutBytes,
	})
	if err != nil {
		return o.at("/environment/limits", err)
	}
	o.manifest.Reset = o.order.Environment.Reset
	return o.resolveRetention()
}

// resolveRetention takes over what is to be kept of the environment. That it has an end, the
// schema of work orders sees to, and the compiler of attempt bundles.
func (o *order) resolveRetention() error {
	r := o.order.Retention
	if r == nil {
		return nil
	}
	o.manifest.Retention = attemptbundle.Retention{Keep: r.Keep, Days: r.Days}
	if c := o.provider.Capabilities(); r.Keep && !c.Retention {
		return o.at("/retention/keep", reason.New(reason.EnvironmentUnsupported, "the environment "+c.Name+" cannot keep a workspace", "/retention/keep",
			"leave it out, or choose an environment that can"))
	}
	return nil
}

// resolvePins finds adapter and tool in the locks, and asks the adapter's manifest
// whether it can do what the order needs (R7).
func (a *Admission) resolvePins(_ context.Context, o *order) (err error) {
	if o.adapter, err = a.Pins.Entry("adapter", o.order.Executor); err != nil {
		return o.at("/executor", err)
	}
	capabilities, err := executor.ParseCapabilities(o.adapter.Manifest, o.adapter.Name)
	if err != nil {
		return err
	}
	o.executor = capabilities
	if err := capabilities.Supports(o.manifest.Isolation, "wasm"); err != nil {
		return o.at("/executor", err)
	}
	o.tool, err = a.Pins.Entry("tool", o.order.Tool.Name)
	return o.at("/tool/name", err)
}

// at says which field of the document a refusal is about. Other errors pass unchanged.
func (o *order) at(pointer string, err error) error {
	r, ok := reason.As(err)
	if !ok {
		return err
	}
	what := r.What
	if filepath.IsAbs(r.Where) {
		what += " (" + r.Where + ")"
	}
	return o.document.Invalid(o.document.Problem(pointer, string(r.Code), what, r.Remedy, r.Code))
}

func (a *Admission) resolveOutputs(ctx context.Context, o *order) error {
	out := o.order.Outputs
	o.outputs = protocol.OutputPolicy{MaxCount: out.MaxCount, MaxBytes: out.MaxBytes, PathPolicyVersion: protocol.PathPolicyV1}
	for _, p := range out.Paths {
		o.outputs.Paths = append(o.outputs.Paths, protocol.Declared{Path: p.Path, MediaType: p.MediaType, Required: p.Required == nil || *p.Required})
	}
	if err := o.outputs.Check(); err != nil {
		return o.at("/outputs", err)
	}
	if out.Result != "" && !slices.ContainsFunc(out.Paths, func(p workorder.DeclaredPath) bool { return p.Path == out.Result }) {
		return o.document.Invalid(o.document.Problem("/outputs/result", "declared",
			fmt.Sprintf("%q is not among the declared paths", out.Result), "declare it under outputs.paths", reason.FreezeBadPolicy))
	}
	if out.Schema == "" {
		return nil
	}
	if out.Result == "" {
		return o.document.Invalid(o.document.Problem("/outputs/schema", "result",
			"a schema is named, and no result for it to hold against", "name the result under outputs.result", reason.FreezeBadPolicy))
	}
	if o.recorded != nil {
		// What counts is what was submitted, wherever its file is now.
		raw, err := a.Artifacts.Read(ctx, o.recorded.Schema, schema.MaxResultSchemaBytes)
		o.schema = raw
		return err
	}
	path := out.Schema
	if !filepath.IsAbs(path) {
		path = filepath.Join(o.origin, path)
	}
	raw, err := ReadFile(path, schema.MaxResultSchemaBytes)
	if err != nil {
		return o.at("/outputs/schema", reason.New(reason.MaterializeMissing, "the output schema cannot be read: "+err.Error(), path,
			"correct outputs.schema; it is taken from the folder of the work order's file"))
	}
	if _, err := schema.CompileResultSchema(raw); err != nil {
		return schemaProblem(path, err)
	}
	o.schema = raw
	return nil
}

// schemaProblem names the file in what is wrong with an output schema.
func schemaProblem(path string, err error) error {
	var invalid *schema.InvalidError
	if !errors.As(err, &invalid) {
		return fmt.Errorf("output schema %s: %w", path, err)
	}
	for i := range invalid.Problems {
		p := &invalid.Problems[i]
		p.File = path
		if p.Remedy == "" {
			p.Remedy = "write it in JSON Schema, draft 2020-12"
		}
	}
	return invalid
}

func (a *Admission) resolveInputs(ctx context.Context, o *order) (err error) {
	o.sources = NewSources(o.origin, o.order.Inputs)
	if o.inputs, err = o.sources.Scan(ctx); err != nil {
		return err
	}
	if o.recorded != nil {
		return o.sameInputs()
	}
	// The manifest stands in the order's record and in the bundle; both have to fit into
	// one turn.
	raw, err := canonical.Marshal(o.inputs)
	if err == nil && len(raw) > maxManifest {
		files, _ := o.inputs.Totals()
		err = reason.New(reason.MaterializeTooLarge, fmt.Sprintf("the list of the inputs' %d files takes %d bytes, more than %d", files, len(raw), maxManifest),
			"inputs", "give fewer files, or files with shorter paths")
	}
	return err
}

// sameInputs refuses inputs that are not those that the order was submitted with.
func (o *order) sameInputs() error {
	was, err := canonical.DigestOf(o.recorded.Inputs)
	if err != nil {
		return err
	}
	is, err := canonical.DigestOf(o.inputs)
	if err != nil {
		return err
	}
	if was != is {
		return reason.New(reason.MaterializeChanged, "the inputs have changed since the work order was submitted", o.origin,
			"put back what was there, or submit the work order anew")
	}
	return nil
}

// maxManifest bounds the list of all input files, in bytes of canonical JSON.
const maxManifest = 1 << 20

// resolveRequests lists the actions that the order needs: those that its tool, inputs
// and outputs imply, and those that it names.
func (a *Admission) resolveRequests(_ context.Context, o *order) error {
	var asked []workorder.Action
	for _, in := range o.order.Inputs {
		asked = append(asked, workorder.Action{Action: "input.read", Resource: "input:" + in.Name + "/**"})
	}
	asked = append(asked, workorder.Action{Action: "tool.run", Resource: "tool:" + o.order.Tool.Name})
	for _, p := range o.order.Outputs.Paths {
		asked = append(asked,
			workorder.Action{Action: "output.write", Resource: "output:" + p.Path},
			workorder.Action{Action: "artifact.write", Resource: "output:" + p.Path})
	}
	if o.order.Outputs.Result != "" {
		asked = append(asked, workorder.Action{Action: "result.report", Resource: "none"})
	}
	for _, p := range o.proposals {
		asked = append(asked, outbox.Asks(p)...)
	}
	asked = append(asked, o.checkpointActions()...)
	implied := len(asked)
	for i, act := range append(asked, o.order.Actions...) {
		r, err := request(act)
		if err != nil {
			if refusal, ok := reason.As(err); ok && i >= implied {
				pointer := fmt.Sprintf("/actions/%d", i-implied)
				return o.document.Invalid(o.document.Problem(pointer, "scope", refusal.What, refusal.Remedy, refusal.Code))
			}
			return err
		}
		o.requests = append(o.requests, r)
	}
	return nil
}

func request(act workorder.Action) (capability.Request, error) {
	r := capability.Request{Grant: capability.Grant{Action: act.Action}, Required: true}
	var err error
	if r.Resource, err = capability.ParseScope(act.Resource); err != nil {
		return capability.Request{}, err
	}
	if act.Destination != "" {
		if r.Destination, err = capability.ParseScope(act.Destination); err != nil {
			return capability.Request{}, err
		}
	}
	return r, nil
}

// resolvePackages compiles role, context and prompt, each a document of its own that
// the bundle names by digest.
func (a *Admission) resolvePackages(ctx context.Context, o *order) error {
	arguments := o.order.Tool.Arguments
	if arguments == nil {
		arguments = []string{}
	}
	for _, p := range []struct {
		digest   *canonical.Digest
		document any
	}{
		{&o.role, workorder.RolePackage{
			Kind: workorder.RolePackageKind, Role: o.order.Role, Profile: "default", Policy: a.Policies.Digest(capability.RoleLayer),
		}},
		{&o.context, workorder.ContextPackage{Kind: workorder.ContextKind, Artifacts: o.given()}},
		{&o.prompt, workorder.PromptPayload{
			Kind: workorder.PromptKind, Objective: o.order.Objective, Tool: o.order.Tool.Name, Arguments: arguments,
		}},
		{&o.requested, o.requests},
	} {
		raw, err := canonical.Marshal(p.document)
		if err != nil {
			return err
		}
		if err := o.keep(ctx, a.Artifacts, raw, packageMediaType, p.digest); err != nil {
			return err
		}
	}
	if o.schema == nil {
		return nil
	}
	return o.keep(ctx, a.Artifacts, o.schema, SchemaMediaType, &o.schemaDigest)
}

func (o *order) keep(ctx context.Context, s *artifact.Store, raw []byte, mediaType string, digest *canonical.Digest) error {
	d, blobs, err := store(ctx, s, raw, mediaType)
	*digest, o.blobs = d, append(o.blobs, blobs...)
	return err
}

// store keeps a document: in the artifact store, or as a blob of the next batch.
func store(ctx context.Context, s *artifact.Store, raw []byte, mediaType string) (canonical.Digest, []journal.Blob, error) {
	ref, blob, err := s.Put(ctx, bytes.NewReader(raw), int64(len(raw)), mediaType)
	if err != nil || blob == nil {
		return ref.Digest, nil, err
	}
	return ref.Digest, []journal.Blob{*blob}, nil
}

// digests are what the reservation fixes.
func (o *order) digests(fence workorder.Fence) (workorder.Digests, error) {
	b := attemptbundle.Bundle{
		Role: attemptbundle.Role{Package: o.role}, Context: o.context, Prompt: o.prompt, Requested: o.requested,
		Environment: o.manifest, Fence: fence, Ceilings: o.ceilings(),
	}
	return b.Digests()
}

// ceilings are the ceilings of the attempt.
func (o *order) ceilings() attemptbundle.Ceilings {
	return attemptbundle.Ceilings{
		Network: o.manifest.Network, Processes: o.manifest.Limits.Processes, Filesystem: o.manifest.Limits.DiskBytes,
		Credentials: []string{}, Calls: o.budget.Calls, Retries: o.budget.Retries, Repairs: o.budget.Repairs,
		Tokens: o.budget.Tokens, WallMillis: o.budget.WallMillis, Money: o.budget.Money,
	}
}
