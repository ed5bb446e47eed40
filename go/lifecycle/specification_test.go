package lifecycle_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/writ-runtime/writ/go/lifecycle"
)

// specified are the edges that SPEC-014 lists for environment and execution, and those
// of the work-order contract that it leans on for attempts: source, target.
func specified() map[string]string {
	return map[string]string{
		"environment": `
			requested provisioned|provisioned attested|attested materialized|materialized active|active freezing|freezing frozen
			|frozen retained|frozen destroying|destroying destroyed
			|requested failed|provisioned failed|attested failed|materialized failed|active failed|freezing failed
			|requested unknown|provisioned unknown|attested unknown|materialized unknown|active unknown|freezing unknown
			|unknown reconciling|reconciling provisioned|reconciling active|reconciling frozen|reconciling failed|reconciling unknown_terminal
			|failed retained|unknown_terminal retained|failed destroying|unknown_terminal destroying`,
		"execution": `
			prepared starting|starting running|running completion_reported|completion_reported collecting|collecting completed
			|running checkpoint_proposed|checkpoint_proposed running
			|prepared cancellation_requested|starting cancellation_requested|running cancellation_requested
			|completion_reported cancellation_requested|collecting cancellation_requested
			|cancellation_requested cancelling|cancelling cancelled|cancelling unknown
			|starting lost|running lost|completion_reported lost|collecting lost
			|starting unknown|running unknown|completion_reported unknown|collecting unknown
			|lost reconciling|unknown reconciling
			|reconciling completion_reported|reconciling cancelled|reconciling failed|reconciling unknown_terminal
			|prepared failed|starting failed|running failed|completion_reported failed|collecting failed`,
		"attempt": `
			reserved leased|reserved expired_no_effect|reserved cancelled_no_effect|leased running
			|leased result_reported|running result_reported|leased cancellation_requested|running cancellation_requested
			|leased lease_expired|running lease_expired
			|cancellation_requested cancelled_no_effect|lease_expired cancelled_no_effect
			|cancellation_requested reconciling|lease_expired reconciling
			|reconciling result_reported|reconciling retryable_failed|reconciling failed|reconciling unknown_terminal
			|result_reported accepted|result_reported retryable_failed|result_reported failed|result_reported rejected_stale|result_reported rejected_conflict`,
	}
}

func TestTheEdgesOfTheSpecification(t *testing.T) {
	r := registry(t)
	for machine, edges := range specified() {
		additions, registered := map[string]bool{}, map[string]bool{}
		for _, tr := range r.Latest(machine).Transitions {
			for _, from := range tr.From {
				edge := string(from) + " " + string(tr.To)
				registered[edge] = true
				if tr.Addition == "" && from != "" {
					additions[edge] = true
				}
			}
		}
		for _, edge := range strings.Split(edges, "|") {
			edge = strings.TrimSpace(edge)
			if !registered[edge] {
				t.Errorf("%s: the edge %q of the specification is missing", machine, edge)
			}
			delete(additions, edge)
		}
		for edge := range additions {
			t.Errorf("%s: %q is no edge of the specification and gives no reason", machine, edge)
		}
	}
}

// The machines that SPEC-014 gives states or edges for are there; every entry of any
// other one says why it exists.
func TestOtherMachinesGiveTheirReasons(t *testing.T) {
	given := []string{"attempt", "environment", "execution", "operation", "reservation", "work_order"}
	var found []string
	for _, m := range registry(t).Machines() {
		if slices.Contains(given, m.Name) {
			found = append(found, m.Name)
			continue
		}
		for _, tr := range m.Transitions {
			if tr.Addition == "" {
				t.Errorf("%s: %s gives no reason", m.Name, tr.Family)
			}
		}
	}
	if !slices.Equal(found, given) {
		t.Errorf("of %v there are %v", given, found)
	}
}

// The states in which nothing of a machine is left to do, and for work orders all others
// that the contract names.
func TestTerminalStatesOfTheSpecification(t *testing.T) {
	r := registry(t)
	for machine, states := range map[string][]lifecycle.State{
		"environment": {"retained", "destroyed"},
		"execution":   {"completed", "cancelled", "failed", "unknown_terminal"},
		"attempt": {"expired_no_effect", "cancelled_no_effect", "retryable_failed", "failed", "unknown_terminal",
			"accepted", "rejected_stale", "rejected_conflict"},
		// A work order whose attempt ended unknown waits for a person: it is not at its end.
		"work_order": {"applied", "failed", "cancelled", "dependency_failed", "budget_exhausted", "conflict", "quarantined", "abandoned_unknown"},
	} {
		m := r.Latest(machine)
		for _, s := range m.States() {
			if got, want := m.Terminal(s), slices.Contains(states, s); got != want {
				t.Errorf("%s: %q terminal is %v, want %v", machine, s, got, want)
			}
		}
	}
	for _, s := range []lifecycle.State{"submitted", "blocked_dependency", "blocked_policy", "blocked_budget", "ready", "active", "cancellation_requested",
		"reconciling", "retry_wait", "result_pending", "unknown_terminal"} {
		if !slices.Contains(r.Latest("work_order").States(), s) {
			t.Errorf("work_order: the state %q is missing", s)
		}
	}
}

// What nobody could settle is settled by a person's disposition and by nothing else, and
// no disposition reopens the attempt (K6).
func TestDispositions(t *testing.T) {
	const guard = "AmbiguousEffectDisposition"
	r := registry(t)
	for machine, targets := range map[string]map[string]lifecycle.State{
		"work_order": {"confirmed_absent": "ready", "confirmed_applied": "result_pending", "abandoned_unknown": "abandoned_unknown"},
		"operation":  {"confirmed_absent": "not_applied", "confirmed_applied": "applied", "abandoned_unknown": "abandoned_unknown"},
		"outbox":     {"confirmed_absent": "proposed", "confirmed_applied": "sent", "abandoned_unknown": "abandoned_unknown"},
		"attempt":    {"disposed": "unknown_terminal"},
	} {
		found := map[string]lifecycle.State{}
		for _, tr := range r.Latest(machine).Transitions {
			_, what := tr.Family.Split()
			if slices.Contains(tr.Receipts, guard) {
				found[what] = tr.To
			} else if machine == "work_order" && slices.Contains(tr.From, "unknown_terminal") {
				t.Errorf("%s leaves unknown_terminal without a person", tr.Family)
			}
		}
		if len(found) != len(targets) {
			t.Errorf("%s: %v rest on a disposition, want %v", machine, found, targets)
		}
		for what, to := range targets {
			if found[what] != to {
				t.Errorf("%s.%s leads to %q, want %q", machine, what, found[what], to)
			}
		}
	}
}
