package capability

import (
	"fmt"

	"github.com/writ-runtime/writ/go/reason"
)

// Denial says which request is not met, which layer refuses it and by which rule, and what to do.
type Denial struct {
	Code        reason.Code `json:"code"`
	Action      string      `json:"action"`
	Resource    Scope       `json:"resource,omitzero"`
	Destination Scope       `json:"destination,omitzero"`
	Layer       Layer       `json:"layer"`
	Rule        string      `json:"rule"`
	File        string      `json:"file,omitempty"`
	Line        int64       `json:"line,omitempty"`
	Reason      string      `json:"reason"`
	Remedy      string      `json:"remedy,omitempty"`
}

// Where returns FILE:LINE of the rule, or the rule's id when no policy file holds it.
func (d Denial) Where() string {
	if d.File == "" {
		return d.Rule
	}
	return fmt.Sprintf("%s:%d", d.File, d.Line)
}

// Refusal returns the denial as an error for a person.
func (d Denial) Refusal() *reason.Refusal {
	what := d.Grant().String() + " is refused by the " + string(d.Layer) + " layer: " + d.Reason
	if d.Action == AnyAction {
		what = "everything is refused by the " + string(d.Layer) + " layer: " + d.Reason
	}
	return reason.New(d.Code, what, d.Where(), d.Remedy)
}

// Grant returns what was refused.
func (d Denial) Grant() Grant {
	return Grant{Action: d.Action, Resource: d.Resource, Destination: d.Destination}
}
