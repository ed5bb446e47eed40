package policy

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/writ-runtime/writ/go/canonical"
	"github.com/writ-runtime/writ/go/capability"
	"github.com/writ-runtime/writ/go/reason"
)

// Engine holds the compiled policy layers. Its policies never change; several callers may use it at once.
type Engine struct {
	options Options
	layers  []*layer
	digests []LayerDigest
	memo    *memo
}

// LayerDigest names the policy of one layer. It covers modules (lib included) and data, by package and content.
type LayerDigest struct {
	Layer  capability.Layer `json:"layer"`
	Digest canonical.Digest `json:"digest"`
}

// Load compiles the four policy layers. It refuses, with FILE:LINE, policies that do not compile strictly
// (policy.load), use a forbidden built-in function (policy.forbidden_builtin) or differ from their pin
// (pin.digest_mismatch).
func Load(ctx context.Context, files Files, o Options) (*Engine, error) {
	o = o.withDefaults()
	if o.Registry == nil {
		return nil, reason.New(reason.InternalBug, "policies were loaded without a registry of actions", "", "")
	}
	byLayer, err := split(files)
	if err != nil {
		return nil, err
	}
	e := &Engine{options: o, memo: newMemo(o.Memo)}
	for _, name := range capability.PolicyLayers() {
		l, err := newLayer(ctx, name, byLayer[name])
		if err != nil {
			return nil, err
		}
		if pin, pinned := o.Pins[name]; pinned && pin != l.digest {
			return nil, reason.New(reason.PinDigestMismatch, fmt.Sprintf("the policy layer %s is %s and pinned as %s", name, l.digest, pin),
				root+string(name), "restore the policies, or pin the new ones")
		}
		e.layers = append(e.layers, l)
		e.digests = append(e.digests, LayerDigest{Layer: name, Digest: l.digest})
	}
	return e, nil
}

// Digests returns the digest of each policy layer, in order.
func (e *Engine) Digests() []LayerDigest { return append([]LayerDigest(nil), e.digests...) }

// Digest returns the digest of one policy layer, or "" when there is no such layer.
func (e *Engine) Digest(l capability.Layer) canonical.Digest {
	for _, d := range e.digests {
		if d.Layer == l {
			return d.Digest
		}
	}
	return ""
}

// Rules returns every rule that can speak, by layer and id.
func (e *Engine) Rules() []Rule {
	var all []Rule
	for _, l := range e.layers {
		all = append(all, l.rules...)
	}
	return all
}

// Decide asks every policy layer about the input. A layer that fails is a failed answer and no error; an error
// means that the input has no canonical form.
//
// The same policies and input give the same decision. One that a deadline cut short says so and is not remembered.
func (e *Engine) Decide(ctx context.Context, in Input) (Decision, error) {
	b, err := in.Bytes()
	if err != nil {
		return Decision{}, fmt.Errorf("input of policies: %w", err)
	}
	key := canonical.Sum(b)
	if d, known := e.memo.get(key); known {
		return d, nil
	}
	input, err := parseInput(b)
	if err != nil {
		return Decision{}, fmt.Errorf("input of policies: %w", err)
	}
	d := Decision{Policies: e.digests, Input: key}
	inTime := true
	for _, l := range e.layers {
		a := l.evaluate(ctx, input, in.Requested, e.options).Narrow(in.Requested)
		inTime = inTime && a.Code != reason.PolicyTimeout
		d.Answers = append(d.Answers, a)
	}
	if inTime {
		e.memo.put(key, d)
	}
	return d, nil
}

func parseInput(b []byte) (ast.Value, error) {
	decoder := json.NewDecoder(bytes.NewReader(b))
	decoder.UseNumber()
	var document any
	if err := decoder.Decode(&document); err != nil {
		return nil, err
	}
	return ast.InterfaceToValue(document)
}
