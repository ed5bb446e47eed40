package capability

import (
	"fmt"
	"slices"

	"github.com/writ-runtime/writ/go/reason"
)

// Resolve intersects the answers of all layers with the mode and with what was requested. It is the only way to a
// set of effective grants.
//
// A layer that is absent, failed, or answers with something that is not a registered grant denies everything, and
// so does an answer from what is no layer. When a required request is not met whole there is at least one Denial
// and nothing is effective, so a caller that forgets the denials holds nothing. Denials are in the order of the
// requests.
func (r *Registry) Resolve(requests []Request, mode Mode, answers map[Layer]Answer) (Effective, []Denial) {
	none := Effective{Mode: mode}
	if denials := r.unaskable(requests, mode); len(denials) > 0 {
		return none, denials
	}
	layers := r.examine(answers)

	var asked []Grant
	for _, q := range requests {
		asked = append(asked, q.Grant)
	}
	grants := NewSet(asked...).Filter(func(g Grant) bool { return r.WithinMode(g, mode) })
	for _, a := range layers {
		grants = grants.Intersect(a.Allowed)
	}

	var denials, omitted []Denial
	for _, q := range requests {
		if grants.satisfies(q.Grant) {
			continue
		}
		d := r.deny(q.Grant, mode, layers)
		if q.Required {
			denials = append(denials, d)
		} else {
			omitted = append(omitted, d)
		}
	}
	if len(denials) == 0 {
		// Without a required request nothing above says that a layer is broken; the attempt must still not start.
		for _, a := range layers {
			if a.Status == Failed {
				denials = append(denials, failedLayer(Grant{Action: AnyAction}, a))
			}
		}
	}
	if len(denials) > 0 {
		return none, denials
	}
	return Effective{Mode: mode, Grants: grants, Omitted: omitted}, nil
}

// unaskable refuses what no layer could allow: it is not a registered grant, or the mode is none.
func (r *Registry) unaskable(requests []Request, mode Mode) []Denial {
	var denials []Denial
	refuse := func(g Grant, rule string, err error) {
		d := Denial{Action: g.Action, Resource: g.Resource, Destination: g.Destination, Layer: WorkOrderLayer, Rule: rule}
		if refusal, ok := reason.As(err); ok {
			d.Code, d.Reason, d.Remedy = refusal.Code, refusal.What, refusal.Remedy
		}
		denials = append(denials, d)
	}
	if _, err := ParseMode(string(mode)); err != nil {
		refuse(Grant{Action: AnyAction}, "work_order.mode", err)
	}
	for _, q := range requests {
		if err := r.Check(q.Grant); err != nil {
			refuse(q.Grant, "work_order.registered_action", err)
		}
	}
	return denials
}

// examine returns one answer for each layer in order, a failed one where the given one cannot be used. An answer
// from what is no layer comes last and fails.
func (r *Registry) examine(answers map[Layer]Answer) []Answer {
	layers := make([]Answer, 0, len(Layers()))
	for _, l := range Layers() {
		a, present := answers[l]
		switch {
		case !present:
			a = Failure(l, reason.PolicyLayerFailed, "it gave no answer", "")
		case a.Layer != l:
			a = Failure(l, reason.PolicyMalformedAnswer, "the answer in its place is of the layer "+quoted(string(a.Layer)), "")
		case a.Status != OK:
			code, detail := a.Code, a.Detail
			if !code.Registered() {
				code = reason.PolicyLayerFailed
			}
			if detail == "" {
				detail = "it could not answer"
			}
			a = Failure(l, code, detail, a.Where)
		default:
			if i := slices.IndexFunc(a.Allowed, func(g Grant) bool { return r.Check(g) != nil }); i >= 0 {
				a = Failure(l, reason.PolicyMalformedAnswer, "it allows "+quoted(a.Allowed[i].String())+", which is no registered grant", "")
			}
		}
		layers = append(layers, a)
	}
	for l := range answers {
		if !l.Valid() {
			// One is enough, and its name is not shown: a map has no order, and answers must not depend on one.
			return append(layers, Failure("", reason.PolicyMalformedAnswer, "an answer came from something that is no layer", ""))
		}
	}
	return layers
}

// deny explains why g is not effective: the first layer, in order, that does not give it.
func (r *Registry) deny(g Grant, mode Mode, layers []Answer) Denial {
	d := Denial{Action: g.Action, Resource: g.Resource, Destination: g.Destination, Code: reason.PolicyDenied}
	action, _ := r.Action(g.Action)
	for _, a := range layers {
		switch {
		case a.Status != OK:
			return failedLayer(g, a)
		case a.Layer == ModeLayer && !action.HumanOnly && !r.WithinMode(g, mode):
			d.Code, d.Layer, d.Rule = reason.CapabilityModeCeiling, ModeLayer, "mode.effect_ceiling"
			d.Reason = fmt.Sprintf("%s needs mode %s or above, and the mode is %s", g.Action, action.MinimumMode, mode)
			d.Remedy = fmt.Sprintf("ask for an action with %s only, or for the work in mode %s", mode.Ceiling(), action.MinimumMode)
			if why, ok := a.explain(g); ok {
				return d.spokenBy(why)
			}
			return d
		case a.Allowed.satisfies(g):
			continue
		}
		d.Layer = a.Layer
		if why, ok := a.explain(g); ok {
			return d.spokenBy(why)
		}
		d.Code, d.Rule = reason.CapabilityNotGranted, string(a.Layer)+".unlisted"
		d.Reason = "the layer lists nothing that allows " + g.String() + whole(a.Allowed.Intersect(NewSet(g)))
		d.Remedy = "ask only for what the layer allows, or have the layer's owner allow it"
		return d
	}
	if action.HumanOnly {
		d.Code, d.Layer, d.Rule = reason.CapabilityHumanOnly, ConstitutionLayer, "constitution.human_only"
		d.Reason = g.Action + " is carried out by people only, in every mode"
		d.Remedy = "prepare it for review and let a person do it"
		return d
	}
	d.Code, d.Layer, d.Rule = reason.CapabilityNotGranted, WorkOrderLayer, "work_order.intersection"
	d.Reason = "every layer allows it, but not all of them through one grant"
	d.Remedy = "ask for each resource by itself"
	return d
}

func (d Denial) spokenBy(why Reason) Denial {
	d.Rule, d.File, d.Line, d.Reason, d.Remedy = why.Rule, why.File, why.Line, why.Text, why.Remedy
	return d
}

func failedLayer(g Grant, a Answer) Denial {
	name := string(a.Layer)
	if name == "" {
		name = "layer"
	}
	return Denial{Code: a.Code, Action: g.Action, Resource: g.Resource, Destination: g.Destination, Layer: a.Layer,
		Rule: name + ".failed", File: a.Where, Reason: "the layer denies everything because " + a.Detail,
		Remedy: "have the layer's owner mend it: a layer that cannot answer allows nothing"}
}

// whole says that a part was allowed.
func whole(part Set) string {
	if len(part) == 0 {
		return ""
	}
	return fmt.Sprintf(" whole; it allows %s", part[0])
}
