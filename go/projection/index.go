// Package projection builds views of the journal. Each can be dropped and built again:
// nothing in it is canonical, and nothing decides on it but what to look at next.
package projection

import (
	"slices"
	"strings"

	"github.com/writ-runtime/writ/go/canonical"
	"github.com/writ-runtime/writ/go/capability"
	"github.com/writ-runtime/writ/go/kernel"
	"github.com/writ-runtime/writ/go/lifecycle"
	"github.com/writ-runtime/writ/go/protocol"
	"github.com/writ-runtime/writ/go/workorder"
)

// Index is where every work order and attempt of a journal stands, at one sequence.
type Index struct {
	// Sequence is the last batch that the index covers, Chain the chain after it.
	Sequence uint64           `json:"sequence"`
	Chain    canonical.Digest `json:"chain,omitempty"`
	Orders   []Order          `json:"work_orders"`
	// Pending are the deliveries of commands that were received and not decided, in the
	// order in which they came.
	Pending  []string  `json:"pending_commands"`
	Attempts []Attempt `json:"attempts"`
}

// LeftOut is what a work order waits for of which turns were left out.
const LeftOut = "a person: turns were left out when the journal was recovered, and what became of it may stand in them (`writ command --help`: resume-work)"

// Order is one row of the index: a work order.
type Order struct {
	ID    workorder.ID `json:"id"`
	Title string       `json:"title"`
	Mode  string       `json:"mode"`
	Tool  string       `json:"tool"`
	// State is where it stands; Blocked says why it waits, empty if it does not.
	State   lifecycle.State `json:"state"`
	Blocked string          `json:"blocked"`
	// Decision is the digest of the policy decision that blocked it, empty for none.
	Decision canonical.Digest `json:"decision,omitempty"`
	// DependsOn are the work orders that must be applied first; Dependency is why it waits
	// for them, or failed by them, nil if neither.
	DependsOn  []workorder.ID     `json:"depends_on"`
	Dependency *kernel.Dependency `json:"dependency"`
	// Budget is why it waits for a budget, or is at its end for want of one, nil if neither.
	Budget *kernel.BudgetBlock `json:"budget"`
	// Attempts counts the attempts that were reserved for it, Last is the newest of them.
	Attempts int                 `json:"attempts"`
	Last     workorder.AttemptID `json:"last_attempt,omitempty"`
	// Failure says why it ended before an attempt could be prepared, nil if it did not.
	Failure *kernel.Failure `json:"failure"`
	// Retry is what it waits for before its next attempt, nil if it does not.
	Retry *kernel.RetryWait `json:"retry"`
	// Waits says what it waits for, empty for one that is at its end or has an attempt under way.
	Waits string `json:"waits"`
	// Raised is how a person approved it for its mode, nil if nobody did.
	Raised *kernel.ModeRaised `json:"mode_raised"`
	// Doubted says that turns were left out since it was submitted, when the journal was
	// recovered, and nobody has said yet that it may be attempted all the same.
	Doubted bool `json:"doubted"`
	// Submitted and Changed are recorded clock readings in milliseconds since 1970 UTC.
	Submitted int64 `json:"submitted_unix_ms"`
	Changed   int64 `json:"changed_unix_ms"`

	// trusted is the turn in which it was submitted or, later, resumed.
	trusted uint64
}

// Attempt is one row of the index: an attempt, with its work order.
type Attempt struct {
	ID        workorder.AttemptID `json:"id"`
	WorkOrder workorder.ID        `json:"work_order"`
	Title     string              `json:"title"`
	Mode      string              `json:"mode"`
	Tool      string              `json:"tool"`
	// The states of the machines; empty where nothing has happened yet.
	Order       lifecycle.State `json:"work_order_state"`
	State       lifecycle.State `json:"state"`
	Execution   lifecycle.State `json:"execution"`
	Environment lifecycle.State `json:"environment"`
	// Result is nil until the attempt came to something.
	Result *workorder.Result `json:"result"`
	// Doubted says that turns were left out since its work order was submitted, when the journal was recovered: what
	// became of it may stand in them.
	Doubted bool `json:"doubted"`
	// Denied says why the policies let nothing of it begin, empty if they did not deny it.
	Denied string `json:"denied"`
	// Begun and Changed are recorded clock readings in milliseconds since 1970 UTC.
	Begun   int64 `json:"begun_unix_ms"`
	Changed int64 `json:"changed_unix_ms"`
	// Open counts operations without an answer, those of the outbox left out.
	Open int `json:"open_operations"`
	// Unsent counts accepted proposals that have not come to an end.
	Unsent int `json:"unsent_proposals"`
	// Given counts accepted proposals that came to an end without leaving, other than by a
	// person who withdrew them.
	Given int `json:"given_up_proposals"`
	// Retention is what was kept of its environment, nil where nothing was.
	Retention *Retention `json:"retention"`

	// The versions of the machines that say what State and Environment mean.
	machine, environmentMachine uint64
}

// Retention is what was kept of an environment that is gone.
type Retention struct {
	Kept protocol.Retention `json:"kept"`
	// Ended says that it is removed, its time being over.
	Ended bool `json:"ended"`
}

// Terminal reports whether nothing of the attempt is left to do: it came to a result,
// nothing of its environment is left, and no operation is open.
func (a Attempt) Terminal(registry *lifecycle.Registry) bool {
	attempts := registry.Machine(kernel.AttemptMachine, a.machine)
	if a.Open > 0 || attempts == nil || !attempts.Terminal(a.State) {
		return false
	}
	environments := registry.Machine(kernel.EnvironmentMachine, a.environmentMachine)
	return attempts.Obligation(a.State) == lifecycle.CleanupNone || environments == nil ||
		environments.Obligation(a.Environment) == lifecycle.CleanupNone
}

// Find returns the attempt whose id begins with prefix, or the newest one of the work order
// whose id does, and every candidate when it is not exactly one.
func (x *Index) Find(prefix string) (*Attempt, []Attempt) {
	var found []Attempt
	for _, a := range x.Attempts {
		if strings.HasPrefix(string(a.ID), prefix) || strings.HasPrefix(string(a.WorkOrder), prefix) {
			found = append(found, a)
		}
	}
	if n := len(found); n == 1 || n > 1 && strings.HasPrefix(prefix, workorder.IDPrefix) && one(found) {
		return &found[n-1], found
	}
	return nil, found
}

// FindOrder returns the work order whose id begins with prefix, and every candidate when it
// is not exactly one.
func (x *Index) FindOrder(prefix string) (*Order, []Order) {
	var found []Order
	for _, o := range x.Orders {
		if strings.HasPrefix(string(o.ID), prefix) {
			found = append(found, o)
		}
	}
	if len(found) == 1 {
		return &found[0], found
	}
	return nil, found
}

// Order returns the row of a work order, or nil.
func (x *Index) Order(id workorder.ID) *Order {
	i, found := slices.BinarySearchFunc(x.Orders, id, func(o Order, id workorder.ID) int { return strings.Compare(string(o.ID), string(id)) })
	if !found {
		return nil
	}
	return &x.Orders[i]
}

// Look returns what another work order can know of one; false for one that is not there.
func (x *Index) Look(id workorder.ID) (kernel.Known, bool) {
	o := x.Order(id)
	if o == nil {
		return kernel.Known{}, false
	}
	return kernel.Known{State: o.State, Mode: capability.Mode(o.Mode), DependsOn: o.DependsOn}, true
}

// Of returns the attempts at a work order, in the order in which they were reserved.
func (x *Index) Of(id workorder.ID) []Attempt {
	var of []Attempt
	for _, a := range x.Attempts {
		if a.WorkOrder == id {
			of = append(of, a)
		}
	}
	return of
}

// Attempt returns the row of an attempt, or nil.
func (x *Index) Attempt(id workorder.AttemptID) *Attempt {
	for i := range x.Attempts {
		if x.Attempts[i].ID == id {
			return &x.Attempts[i]
		}
	}
	return nil
}

// one reports whether all attempts are of one work order.
func one(attempts []Attempt) bool {
	return !slices.ContainsFunc(attempts, func(a Attempt) bool { return a.WorkOrder != attempts[0].WorkOrder })
}
