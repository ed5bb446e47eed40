package admission

import (
	"context"

	"github.com/writ-runtime/writ/go/canonical"
	"github.com/writ-runtime/writ/go/capability"
	"github.com/writ-runtime/writ/go/environment"
	"github.com/writ-runtime/writ/go/policy"
	"github.com/writ-runtime/writ/go/reason"
)

// decide asks every layer and intersects their answers.
func (a *Admission) decide(ctx context.Context, o *order) (policy.Record, error) {
	in := a.input(o)
	d, err := a.Policies.Decide(ctx, in)
	if err != nil {
		return policy.Record{}, err
	}
	deployment, ok := d.Answer(capability.DeploymentLayer)
	if !ok {
		deployment = capability.Failure(capability.DeploymentLayer, reason.PolicyLayerFailed, "it gave no answer", "")
	}
	return a.Policies.Conclude(in, d, support(o.provider.Capabilities(), in.Requested), a.Broker.Offer(deployment, in.Requested)), nil
}

// input is what policies see, with every default filled in.
func (a *Admission) input(o *order) policy.Input {
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
		},
		Requested: o.requests, Deployment: policy.InputDeployment{Name: a.Deployment},
		Facts: policy.Facts{AdapterDigest: o.adapter.Digest, ModeEvidence: canonical.Digest("")},
	}
	for _, i := range w.Inputs {
		in.WorkOrder.Inputs = append(in.WorkOrder.Inputs, policy.InputMount{Name: i.Name})
	}
	for _, p := range w.Outputs.Paths {
		in.WorkOrder.Outputs.Paths = append(in.WorkOrder.Outputs.Paths, policy.InputPath{Path: p.Path})
	}
	return in
}

// support is the answer of the layer of what environment and executor can carry out:
// of what is asked, the actions that the provider lists.
func support(c environment.Capabilities, requests []capability.Request) capability.Answer {
	can := map[string]bool{}
	for _, action := range c.Actions {
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
