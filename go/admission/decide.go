package admission

import (
	"context"
	"slices"

	"github.com/writ-runtime/writ/go/artifact"
	"github.com/writ-runtime/writ/go/canonical"
	"github.com/writ-runtime/writ/go/capability"
	"github.com/writ-runtime/writ/go/environment"
	"github.com/writ-runtime/writ/go/journal"
	"github.com/writ-runtime/writ/go/kernel"
	"github.com/writ-runtime/writ/go/outbox"
	"github.com/writ-runtime/writ/go/policy"
	"github.com/writ-runtime/writ/go/reason"
	"github.com/writ-runtime/writ/go/workorder"
)

// decide asks every layer and intersects their answers.
func (a *Admission) decide(ctx context.Context, in policy.Input, provider environment.Provider) (policy.Record, error) {
	d, err := a.Policies.Decide(ctx, in)
	if err != nil {
		return policy.Record{}, err
	}
	deployment, ok := d.Answer(capability.DeploymentLayer)
	if !ok {
		deployment = capability.Failure(capability.DeploymentLayer, reason.PolicyLayerFailed, "it gave no answer", "")
	}
	return a.Policies.Conclude(in, d, support(provider.Capabilities(), in.Requested), a.Broker.Offer(deployment, in.Requested)), nil
}

// undecided is why a record is no decision: a layer that did not answer in time denies
// everything, for now and not for good.
func undecided(r policy.Record) error {
	for _, d := range r.Denials {
		if d.Code.Transient() {
			return d.Refusal()
		}
	}
	return nil
}

// Changed reports whether the policies of today, or the deployment that they are asked for,
// are others than those of a recorded decision: only then can deciding again come to
// anything else.
func (a *Admission) Changed(ctx context.Context, decision canonical.Digest) (bool, error) {
	was, in, err := a.decided(ctx, decision)
	if err != nil {
		return false, err
	}
	deployment, err := LoadDeployment(a.State)
	return err == nil && (in.Deployment.Name != deployment.Name || !slices.Equal(was.Policies, a.Policies.Digests())), err
}

// decided reads a recorded decision, and what the policies saw.
func (a *Admission) decided(ctx context.Context, decision canonical.Digest) (was policy.Record, in policy.Input, err error) {
	raw, err := a.Artifacts.Read(ctx, decision, artifact.MaxDocument)
	if err != nil {
		return was, in, err
	}
	if was, err = policy.ParseRecord(raw); err != nil {
		return was, in, err
	}
	if raw, err = a.Artifacts.Read(ctx, was.Input, artifact.MaxDocument); err != nil {
		return was, in, err
	}
	return was, in, canonical.Decode(raw, &in)
}

// Reconsider decides once more on what an attempt was granted, under the policies of today:
// what leaves later is judged when it leaves. It comes with the blobs that keep the record.
func (a *Admission) Reconsider(ctx context.Context, s kernel.State) (policy.Record, canonical.Digest, []journal.Blob, error) {
	_, in, err := a.decided(ctx, s.Decision())
	if err != nil {
		return policy.Record{}, "", nil, err
	}
	provider, err := a.Providers.Find(s.Bundle.Bundle().Environment.Provider.Name)
	if err != nil {
		return policy.Record{}, "", nil, err
	}
	deployment, err := LoadDeployment(a.State)
	if err != nil {
		return policy.Record{}, "", nil, err
	}
	in.Deployment = policy.InputDeployment{Name: deployment.Name}
	record, err := a.decide(ctx, in, provider)
	if err != nil {
		return policy.Record{}, "", nil, err
	}
	if err := undecided(record); err != nil {
		return policy.Record{}, "", nil, err
	}
	decision, blobs, err := a.keep(ctx, in, record)
	return record, decision, blobs, err
}

// input is what policies see, with every default filled in.
func (o *order) input() policy.Input {
	w, l := o.order, o.manifest.Limits
	in := policy.Input{
		WorkOrder: policy.InputWorkOrder{
			Mode: capability.Mode(w.Mode), Role: w.Role, CodeClass: w.CodeClass,
			Executor: w.Executor, Tool: policy.InputTool{Name: o.tool.Name, Digest: o.tool.Digest},
			Environment: policy.InputEnvironment{
				Provider: o.manifest.Provider.Name, Class: o.manifest.Isolation,
				Limits: map[string]int64{
					"memory_bytes": l.MemoryBytes, "disk_bytes": l.DiskBytes, "wall_ms": l.WallMillis, "cpu_ms": l.CPUMillis,
					"processes": l.Processes, "files": l.Files,
				},
			},
			Outputs: policy.InputOutputs{MaxBytes: w.Outputs.MaxBytes, MaxCount: w.Outputs.MaxCount},
			Limits: map[string]int64{
				"calls": o.budget.Calls, "retries": o.budget.Retries, "repairs": o.budget.Repairs,
				"tokens": o.budget.Tokens, "wall_ms": o.budget.WallMillis,
			},
			Account: w.Account,
		},
		Requested: o.requests, Deployment: policy.InputDeployment{Name: o.deployment},
		Facts: o.facts,
	}
	if r := o.manifest.Retention; r.Keep {
		in.WorkOrder.Retention = &policy.InputRetention{Keep: true, Days: r.Days}
	}
	for _, i := range w.Inputs {
		in.WorkOrder.Inputs = append(in.WorkOrder.Inputs, policy.InputMount{Name: i.Name})
	}
	if o.from != nil {
		in.WorkOrder.Inputs = append(in.WorkOrder.Inputs, policy.InputMount{Name: workorder.CheckpointInput})
	}
	for _, p := range w.Outputs.Paths {
		in.WorkOrder.Outputs.Paths = append(in.WorkOrder.Outputs.Paths, policy.InputPath{Path: p.Path})
	}
	return in
}

// support is the answer of the layer of what environment and executor can carry out:
// of what is asked, the actions that the provider lists, and those of the outbox.
func support(c environment.Capabilities, requests []capability.Request) capability.Answer {
	can := map[string]bool{}
	for _, action := range slices.Concat(c.Actions, outbox.Actions()) {
		can[action] = true
	}
	answer := capability.Answer{Layer: capability.SupportLayer, Status: capability.OK}
	var grants []capability.Grant
	for _, r := range requests {
		if can[r.Action] {
			grants = append(grants, r.Grant)
			continue
		}
		answer.Reasons = append(answer.Reasons, capability.Reason{
			Effect: capability.Deny, Action: r.Action, Resource: r.Resource, Destination: r.Destination, Rule: "support.environment",
			Text:   "the environment " + c.Name + " cannot carry out " + r.Action,
			Remedy: "leave it out, or choose an environment that can",
		})
	}
	answer.Allowed = capability.NewSet(grants...)
	return answer
}
