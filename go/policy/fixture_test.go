package policy_test

import (
	"context"
	"maps"
	"testing"
	"time"

	"github.com/writ-runtime/writ/go/canonical"
	"github.com/writ-runtime/writ/go/capability"
	"github.com/writ-runtime/writ/go/policy"
	"github.com/writ-runtime/writ/policies"
	"github.com/writ-runtime/writ/schemas"
)

func registry(t testing.TB) *capability.Registry {
	t.Helper()
	b, err := schemas.FS.ReadFile("actions.v1.json")
	if err != nil {
		t.Fatal(err)
	}
	r, err := capability.ParseRegistry(b)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func shipped(t testing.TB) policy.Files {
	t.Helper()
	files, err := policy.Read(policies.FS)
	if err != nil {
		t.Fatal(err)
	}
	return files
}

func load(t testing.TB, files policy.Files, change func(*policy.Options)) *policy.Engine {
	t.Helper()
	// A busy machine is no reason to fail: only the test of deadlines sets a short one.
	o := policy.Options{Registry: registry(t), Timeout: time.Minute}
	if change != nil {
		change(&o)
	}
	e, err := policy.Load(context.Background(), files, o)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// replaced returns the shipped policies with one layer's module written anew.
func replaced(t testing.TB, l capability.Layer, module string) policy.Files {
	t.Helper()
	files := maps.Clone(shipped(t))
	files["policies/"+string(l)+"/"+string(l)+".rego"] = []byte(module)
	return files
}

func request(t testing.TB, action, resource, destination string) capability.Request {
	t.Helper()
	g, err := registry(t).ParseGrant(action, resource, destination)
	if err != nil {
		t.Fatal(err)
	}
	return capability.Request{Grant: g, Required: true}
}

// report is the input of an ordinary work order.
func report(t testing.TB, more ...capability.Request) policy.Input {
	t.Helper()
	return policy.Input{
		WorkOrder: policy.InputWorkOrder{
			Mode: capability.Observe, Role: "analyst",
			CodeClass: "candidate", Executor: "reference-local",
			Tool: policy.InputTool{Name: "textstat", Digest: canonical.Sum([]byte("textstat"))},
			Environment: policy.InputEnvironment{Provider: "wasm", Class: "ephemeral_isolated",
				Limits: map[string]int64{"memory_bytes": 268435456, "wall_ms": 60000}},
			Inputs:  []policy.InputMount{{Name: "docs"}},
			Outputs: policy.InputOutputs{Paths: []policy.InputPath{{Path: "report.json"}, {Path: "report.md"}}, MaxBytes: 1048576, MaxCount: 4},
			Limits:  map[string]int64{"calls": 10},
		},
		Deployment: policy.InputDeployment{Name: "local"},
		Requested: append([]capability.Request{
			request(t, "input.read", "input:docs/**", ""),
			request(t, "tool.run", "tool:textstat", ""),
			request(t, "output.write", "output:report.json", ""),
			request(t, "output.write", "output:report.md", ""),
			request(t, "artifact.write", "output:report.json", ""),
			request(t, "result.report", "", ""),
		}, more...),
	}
}

// agreeing is an answer of a layer that is no policy and allows all that was asked.
func agreeing(l capability.Layer, in policy.Input) capability.Answer {
	a := capability.Asked(in.Requested)
	return capability.Answer{Layer: l, Status: capability.OK, Allowed: a.Allowed}
}

func conclude(t testing.TB, e *policy.Engine, in policy.Input) policy.Record {
	t.Helper()
	d, err := e.Decide(context.Background(), in)
	if err != nil {
		t.Fatal(err)
	}
	return e.Conclude(in, d, agreeing(capability.SupportLayer, in), agreeing(capability.BrokerLayer, in))
}
