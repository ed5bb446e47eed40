package workorder

import "github.com/writ-runtime/writ/go/operation"

// Proposal orders an effect that is to leave once a reducer has accepted the result. It is
// an order like any other: what it names must be granted, when the attempt is admitted and
// again when the effect is sent.
type Proposal struct {
	// Purpose tells the proposals of an order apart: 1 to 63 of a-z, 0-9, '_' and '-'.
	Purpose string `json:"purpose"`
	// Effector is the kind of operation that carries it out: publish, branch or
	// review_packet. In the bundle of an attempt in mode shadow it is shadow_publish.
	Effector operation.Kind `json:"effector"`
	// Destination is folder:NAME or repo:NAME, by the deployment's name for it, and none in
	// the shadow namespace.
	Destination string `json:"destination"`
	// Repository and Base are what a review packet shows the changes of, and the commit that
	// changes are made on.
	Repository string `json:"repository,omitempty"`
	Base       string `json:"base,omitempty"`
	// Files are declared output paths. Without any all outputs leave.
	Files   []string `json:"files,omitempty"`
	Title   string   `json:"title,omitempty"`
	Message string   `json:"message,omitempty"`
}
