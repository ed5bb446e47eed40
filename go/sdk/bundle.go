package sdk

import (
	"fmt"

	"github.com/writ-runtime/writ/go/canonical"
	"github.com/writ-runtime/writ/go/operation"
	"github.com/writ-runtime/writ/go/protocol"
	"github.com/writ-runtime/writ/go/reason"
	"github.com/writ-runtime/writ/go/workorder"
)

// Bundle is an attempt bundle as an adapter reads it: the parts that say what to run, and the whole document for the
// rest. It is immutable and checked against the digest that the call carries.
type Bundle struct {
	Digest    canonical.Digest
	Attempt   workorder.AttemptID
	Namespace string
	Mode      string
	// Isolation is the class of the environment: trusted_local, ephemeral_isolated. Provider is who provides it.
	Isolation string
	Provider  Pin
	Adapter   Pin
	Tools     []Pin
	// Model and Harness say whether one is pinned.
	Model, Harness bool
	// Tool, Arguments and Seed are what the bundle orders to run.
	Tool      string
	Arguments []string
	Seed      canonical.Digest
	Prompt    canonical.Digest
	// Decision is the policy decision that the attempt runs under.
	Decision canonical.Digest
	// Result is the declared path of the structured result, Schema what it must satisfy.
	Result string
	Schema canonical.Digest
	// Document is the whole bundle.
	Document canonical.Value
}

// Pin names exact bytes by version and digest.
type Pin struct {
	Name    string           `json:"name"`
	Version string           `json:"version"`
	Digest  canonical.Digest `json:"digest"`
}

// bundleKind is the registered kind of the bundles that this sdk reads.
const bundleKind = "writ.attempt_bundle.v1"

// ParseBundle reads a bundle and holds its bytes against their digest.
func ParseBundle(raw []byte, digest canonical.Digest) (*Bundle, error) {
	if got := canonical.Sum(raw); got != digest {
		return nil, reason.New(reason.BundleDigestMismatch, fmt.Sprintf("the attempt bundle has digest %s, the call carries %s", got, digest),
			"", "call with the bundle of the activated attempt")
	}
	doc, err := canonical.Parse(raw, canonical.DefaultLimits())
	if err != nil {
		return nil, fmt.Errorf("attempt bundle %s: %w", digest, err)
	}
	b := &Bundle{Digest: digest, Document: doc}
	var kind string
	for _, f := range []struct {
		into any
		path []string
	}{
		{&kind, []string{"kind"}},
		{&b.Attempt, []string{"attempt", "id"}},
		{&b.Namespace, []string{"operations", "namespace"}},
		{&b.Mode, []string{"mode"}},
		{&b.Isolation, []string{"environment", "isolation_class"}},
		{&b.Provider, []string{"environment", "provider"}},
		{&b.Adapter, []string{"pins", "adapter"}},
		{&b.Tools, []string{"pins", "tools"}},
		{&b.Tool, []string{"execution", "tool"}},
		{&b.Arguments, []string{"execution", "arguments"}},
		{&b.Seed, []string{"execution", "seed"}},
		{&b.Prompt, []string{"prompt"}},
		{&b.Result, []string{"outputs", "result"}},
		{&b.Decision, []string{"policy", "decision"}},
	} {
		if err := b.read(f.into, f.path); err != nil {
			return nil, err
		}
	}
	if kind != bundleKind {
		return nil, Unsupported("attempt bundles of kind "+kind, "use the adapter's release for this Writ")
	}
	_ = b.read(&b.Schema, []string{"outputs", "schema"}) // left out where there is none
	b.Model, b.Harness = b.names("pins", "model"), b.names("pins", "harness")
	return b, nil
}

func (b *Bundle) read(into any, path []string) error {
	v, ok := b.Document, true
	for _, name := range path {
		if v, ok = v.Get(name); !ok {
			return reason.New(reason.BundleUnknownField, fmt.Sprintf("the attempt bundle lacks %v", path), string(b.Digest), "compile it with this release")
		}
	}
	if err := v.Decode(into); err != nil {
		return fmt.Errorf("attempt bundle %s, %v: %w", b.Digest, path, err)
	}
	return nil
}

// names reports whether the document holds something other than null under the path.
func (b *Bundle) names(path ...string) bool {
	v, ok := b.Document, true
	for _, name := range path {
		if v, ok = v.Get(name); !ok {
			return false
		}
	}
	return v.Kind() != canonical.KindNull
}

// Handle names the execution of this bundle by this adapter.
func (b *Bundle) Handle() string { return b.Adapter.Name + ":" + string(b.Attempt) }

// Launch is the one launch that the bundle orders: its tool with its arguments and seed. The host launches nothing
// that the bundle does not order.
func (b *Bundle) Launch() Launch {
	l := Launch{Purpose: "main", Parameters: protocol.LaunchParameters{Arguments: b.Arguments, Seed: b.Seed}}
	for _, t := range b.Tools {
		if t.Name == b.Tool {
			l.Parameters.Tool = t.Digest
		}
	}
	return l
}

// call makes the request of a launch and the call that carries it, in the place of the given call.
func (b *Bundle) call(under protocol.Call, l Launch) (protocol.Call, canonical.Raw, error) {
	r, err := protocol.NewRequest(operation.Launch, b.Digest, b.Attempt, under.Operation.Actor(), l.Purpose, l.Parameters)
	if err != nil {
		return protocol.Call{}, nil, err
	}
	key, err := operation.NewKey(under.Operation.Namespace(), string(b.Attempt), r.Actor, operation.Launch, l.Purpose)
	if err != nil {
		return protocol.Call{}, nil, err
	}
	raw, err := canonical.Marshal(r)
	if err != nil {
		return protocol.Call{}, nil, fmt.Errorf("request of %s: %w", key, err)
	}
	return protocol.Call{Bundle: under.Bundle, Fence: under.Fence, Operation: key, Digest: canonical.Sum(raw)}, raw, nil
}
