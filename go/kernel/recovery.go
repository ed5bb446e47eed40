package kernel

import (
	"fmt"
	"slices"

	"github.com/writ-runtime/writ/go/canonical"
	"github.com/writ-runtime/writ/go/lifecycle"
	"github.com/writ-runtime/writ/go/reason"
)

// JournalMachine is the machine of what happens to the journal itself.
const JournalMachine = "journal"

// RecoveryPrefix begins the id of the subject of every recovery; a number from 1 follows.
const RecoveryPrefix = "recovery-"

// maxLost bounds the artifacts that one recovery gives up, so that its turn stays one that
// can be read back.
const maxLost = 20_000

// Recover records that a person has the journal go on although it is damaged.
type Recover struct {
	// Number counts the recoveries of the journal from 1.
	Number    uint64
	Recovered Recovered
	// Ingress is the digest of the ingress receipt of the delivery.
	Ingress canonical.Digest
}

// Recovered is the body of journal.recovered: what was accepted, by whom and why.
type Recovered struct {
	// Sequence and Chain are those of the last intact turn, after which the journal goes on.
	Sequence uint64           `json:"sequence"`
	Chain    canonical.Digest `json:"chain"`
	// Found counts what was found damaged, LeftOut the turns that are not proven and stay in
	// the damaged file.
	Found   uint64 `json:"found"`
	LeftOut uint64 `json:"left_out"`
	// Lost are the artifacts whose bytes are gone, sorted. They stay gone; verification
	// names them and goes on.
	Lost []canonical.Digest `json:"lost"`
	// Kept is the damaged file as it stands in the state folder.
	Kept      KeptFile `json:"kept"`
	Principal string   `json:"principal"`
	Reason    string   `json:"reason"`
}

// KeptFile names a file of the state folder and its bytes.
type KeptFile struct {
	Name   string           `json:"name"`
	Digest canonical.Digest `json:"digest"`
	Size   int64            `json:"size"`
}

func (c Recover) decide(d *decision) error {
	if c.Recovered.Reason == "" || c.Recovered.Principal == "" {
		return reason.New(reason.JournalUnaccepted, "a recovery names who accepts it and why", "", "say why with --reason")
	}
	if len(c.Recovered.Lost) > maxLost {
		return reason.New(reason.JournalUnrecoverable, fmt.Sprintf("%d artifacts are lost, more than one recovery can give up (%d)", len(c.Recovered.Lost), maxLost),
			"", "restore the state folder from a copy")
	}
	if c.Recovered.Lost == nil {
		c.Recovered.Lost = []canonical.Digest{}
	}
	slices.Sort(c.Recovered.Lost)
	g, err := report("RecoveryReport", c.Recovered)
	if err != nil {
		return err
	}
	subject := lifecycle.Of(JournalMachine, fmt.Sprintf("%s%d", RecoveryPrefix, c.Number))
	return d.emit(subject, "journal.recovered", c.Recovered, g, guard("IngressReceipt", c.Ingress))
}
