package kernel

import (
	"fmt"
	"strings"

	"github.com/writ-runtime/writ/go/capability"
	"github.com/writ-runtime/writ/go/lifecycle"
	"github.com/writ-runtime/writ/go/reason"
	"github.com/writ-runtime/writ/go/workorder"
)

// Dependency is the body of the events by which a work order waits for others, or fails
// by them.
type Dependency struct {
	Code reason.Code `json:"code"`
	Why  string      `json:"why"`
	// On are the work orders that it depends on and that are not applied.
	On []DependsOn `json:"on"`
}

// DependsOn is where one of them stands; its state is empty where there is none.
type DependsOn struct {
	WorkOrder workorder.ID    `json:"work_order"`
	State     lifecycle.State `json:"state"`
}

// Known is what is known of a work order that another depends on.
type Known struct {
	State     lifecycle.State
	Mode      capability.Mode
	DependsOn []workorder.ID
}

// Depends judges what a work order depends on: nil once all of it is applied, where it may
// rest on that. look is false for a work order that is not there.
func (k Kernel) Depends(id workorder.ID, mode capability.Mode, on []workorder.ID, look func(workorder.ID) (Known, bool)) *Dependency {
	d := &Dependency{}
	worse := func(code reason.Code, why string) {
		// A circle is never mended, what is missing or has failed neither; a wait may be.
		rank := map[reason.Code]int{reason.DependencyCycle: 4, reason.DependencyMissing: 3, reason.DependencyFailed: 2, reason.DependencyWaiting: 1}
		if rank[code] > rank[d.Code] {
			d.Code, d.Why = code, why
		}
	}
	machine := k.transitions.Latest(WorkOrderMachine)
	for _, other := range on {
		known, there := look(other)
		state, shadow := known.State, known.Mode == capability.Shadow && mode != capability.Shadow
		if there && state == "applied" && !shadow {
			continue
		}
		d.On = append(d.On, DependsOn{other, state})
		switch {
		case !there:
			worse(reason.DependencyMissing, fmt.Sprintf("it depends on %s, which does not exist", other))
		case shadow:
			// What counts in the shadow namespace only is nothing that others rely on (C5).
			worse(reason.DependencyFailed, fmt.Sprintf("it depends on %s, which is in mode shadow: nothing outside that mode rests on it", other))
		case machine.Terminal(state):
			worse(reason.DependencyFailed, fmt.Sprintf("it depends on %s, which is %s", other, state))
		default:
			worse(reason.DependencyWaiting, fmt.Sprintf("it depends on %s, which is %s", other, state))
		}
	}
	if circle := circle(id, on, look); circle != nil {
		worse(reason.DependencyCycle, "it depends on itself: "+strings.Join(circle, " on "))
	}
	if len(d.On) == 0 {
		return nil
	}
	return d
}

// circle returns the way from a work order back to itself, nil if there is none.
func circle(id workorder.ID, on []workorder.ID, look func(workorder.ID) (Known, bool)) []string {
	seen := map[workorder.ID]bool{}
	var walk func(at workorder.ID, on []workorder.ID) []string
	walk = func(at workorder.ID, on []workorder.ID) []string {
		for _, next := range on {
			if next == id {
				return []string{string(at), string(id)}
			}
			if seen[next] {
				continue
			}
			seen[next] = true
			if known, there := look(next); there {
				if way := walk(next, known.DependsOn); way != nil {
					return append([]string{string(at)}, way...)
				}
			}
		}
		return nil
	}
	return walk(id, on)
}

// Depend records that a work order waits for others, or that it fails by them.
type Depend struct {
	Dependency
}

func (c Depend) decide(d *decision) error {
	g, err := report("DependencyReport", c.Dependency)
	if err != nil {
		return err
	}
	if c.Code != reason.DependencyWaiting {
		return d.of("work_order.dependency_failed", c.Dependency, g)
	}
	if d.in(WorkOrderMachine, "blocked_dependency") {
		return nil // It waits already.
	}
	return d.of("work_order.blocked_dependency", c.Dependency, g)
}
