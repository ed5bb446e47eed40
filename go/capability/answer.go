package capability

import (
	"slices"

	"github.com/writ-runtime/writ/go/reason"
)

// Status says whether a layer could answer.
type Status string

// The statuses. Whatever is not OK counts as Failed.
const (
	OK     Status = "ok"
	Failed Status = "failed"
)

// Answer is what one layer allows, and why.
type Answer struct {
	Layer  Layer  `json:"layer"`
	Status Status `json:"status"`
	// Code, Detail and Where say why a failed layer failed.
	Code   reason.Code `json:"code,omitempty"`
	Detail string      `json:"detail,omitempty"`
	Where  string      `json:"where,omitempty"`
	// Allowed is what the layer allows; its own denials are taken off already.
	Allowed Set `json:"allowed"`
	// Reasons are the rules that spoke, allowing ones and denying ones.
	Reasons []Reason `json:"reasons,omitempty"`
	// Narrowings are the requests of which the layer allows less than was asked, but not nothing.
	Narrowings []Narrowing `json:"narrowings,omitempty"`
}

// Failure is the answer of a layer that could not answer. It allows nothing.
func Failure(l Layer, code reason.Code, detail, where string) Answer {
	return Answer{Layer: l, Status: Failed, Code: code, Detail: detail, Where: where}
}

// Asked is the answer of the work order's own layer: exactly what it asks for.
func Asked(requests []Request) Answer {
	a := Answer{Layer: WorkOrderLayer, Status: OK}
	grants := make([]Grant, len(requests))
	for i, r := range requests {
		grants[i] = r.Grant
		if r.Why != "" {
			a.Reasons = append(a.Reasons, Reason{Effect: Allow, Action: r.Action, Resource: r.Resource,
				Destination: r.Destination, Rule: "work_order.asks", Text: r.Why})
		}
	}
	a.Allowed = NewSet(grants...)
	return a
}

// Narrow returns the answer with Narrowings filled from what was requested. It keeps the rest.
func (a Answer) Narrow(requests []Request) Answer {
	a.Narrowings = nil
	for _, r := range requests {
		got := a.Allowed.Intersect(NewSet(r.Grant))
		if len(got) > 0 && !got.Covers(r.Grant) {
			a.Narrowings = append(a.Narrowings, Narrowing{Requested: r.Grant, Allowed: got})
		}
	}
	return a
}

// explain returns the rule that speaks for denying g, if the layer named one: a denial whose scopes meet those of
// g first, then one that denies everything.
func (a Answer) explain(g Grant) (Reason, bool) {
	i := slices.IndexFunc(a.Reasons, func(r Reason) bool { return r.Effect == Deny && r.meets(g) })
	if i < 0 {
		i = slices.IndexFunc(a.Reasons, func(r Reason) bool { return r.Effect == Deny && r.Action == AnyAction })
	}
	if i < 0 {
		return Reason{}, false
	}
	return a.Reasons[i], true
}
