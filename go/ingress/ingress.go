// Package ingress is where every request to change state comes in: a delivery gets a
// receipt that says who really sent it, its intent is read by a strict grammar, and a
// decision is made. What a sender claims about itself is never looked at.
package ingress

import (
	"fmt"
	"slices"
	"strings"

	"github.com/writ-runtime/writ/go/canonical"
	"github.com/writ-runtime/writ/go/journal"
	"github.com/writ-runtime/writ/go/reason"
)

// ReceiptKind is the registered kind of an ingress receipt.
const ReceiptKind = "writ.ingress_receipt.v1"

// DeliveryPrefix is the prefix of a delivery's id.
const DeliveryPrefix = "dlv_"

// Verb is what a delivery may ask for.
type Verb string

// The verbs of this release.
const (
	// Run submits a work order and carries out an attempt at it.
	Run Verb = "run"
	// Submit records a work order for a later attempt.
	Submit Verb = "submit"
	// Tick attempts the work orders that may be attempted now.
	Tick Verb = "tick"
	// Reconcile closes what an earlier life left open.
	Reconcile Verb = "reconcile"
	// Command is a command in the words of the grammar.
	Command Verb = "command"
	// Recover has a damaged journal go on.
	Recover Verb = "recover"
)

// Delivery is what arrived, before anything is believed of it.
type Delivery struct {
	ID string
	// Channel is how it came in: "cli" for the local command line.
	Channel string
	Verb    Verb
	// Content is the exact bytes, for run the work order's document.
	Content []byte
}

// Receipt is the durable record of a delivery.
type Receipt struct {
	Kind    string           `json:"kind"`
	ID      string           `json:"id"`
	Channel string           `json:"channel"`
	Verb    Verb             `json:"verb"`
	Content canonical.Digest `json:"content"`
	// Principal is who the channel knows the sender to be.
	Principal string `json:"principal"`
}

// Accepted is a delivery that may be acted on.
type Accepted struct {
	Receipt Receipt
	Digest  canonical.Digest
	// Blob carries the receipt's bytes into the batch that acts on it.
	Blob journal.Blob
}

// Gate decides which deliveries are acted on. Principals are enumerated: whoever is
// not in the list is refused, whatever the content says.
type Gate struct {
	principals []string
}

// NewGate returns a gate for the given principals, such as "uid:1000".
func NewGate(principals ...string) Gate { return Gate{principals} }

// Person is the principal of a person on this machine, by the user id that the kernel
// reports for the process.
func Person(uid int) string { return fmt.Sprintf("uid:%d", uid) }

// Accept receipts a delivery from the given principal, or refuses it.
func (g Gate) Accept(principal string, d Delivery) (Accepted, error) {
	if !slices.Contains(g.principals, principal) {
		return Accepted{}, reason.New(reason.IngressPrincipalUnknown, principal+" may not command this state folder", d.Channel,
			"run as the user that owns the state folder ("+strings.Join(g.principals, ", ")+")")
	}
	if !slices.Contains([]Verb{Run, Submit, Tick, Reconcile, Command, Recover}, d.Verb) {
		return Accepted{}, reason.New(reason.UsageInvalid, fmt.Sprintf("%q is no verb of this release", d.Verb), d.Channel, "see `writ help`")
	}
	if _, err := canonical.ParseID(DeliveryPrefix, d.ID); err != nil {
		return Accepted{}, reason.New(reason.IngressMalformed, fmt.Sprintf("%.80q is no id of a delivery", d.ID), d.Channel,
			"send "+DeliveryPrefix+" and a UUIDv7 in lower case")
	}
	r := Receipt{Kind: ReceiptKind, ID: d.ID, Channel: d.Channel, Verb: d.Verb, Content: canonical.Sum(d.Content), Principal: principal}
	raw, err := canonical.Marshal(r)
	if err != nil {
		return Accepted{}, fmt.Errorf("ingress receipt of %s: %w", d.ID, err)
	}
	digest := canonical.Sum(raw)
	return Accepted{Receipt: r, Digest: digest, Blob: journal.Blob{Digest: digest, MediaType: "application/vnd.writ.ingress-receipt+json", Bytes: raw}}, nil
}
