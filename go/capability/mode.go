package capability

import (
	"fmt"

	"github.com/writ-runtime/writ/go/reason"
)

// Mode is the greatest kind of effect that an attempt may have. It is a maximum and never a grant: raising it adds
// no action, and no grant raises it.
type Mode string

// The modes, from the lowest to the highest.
const (
	Observe    Mode = "observe"
	Shadow     Mode = "shadow"
	Proposal   Mode = "proposal"
	Production Mode = "production"
)

// Modes returns the modes from the lowest to the highest.
func Modes() []Mode { return []Mode{Observe, Shadow, Proposal, Production} }

// ParseMode returns s as a mode, or a Refusal with code capability.unknown_mode.
func ParseMode(s string) (Mode, error) {
	if m := Mode(s); m.Valid() {
		return m, nil
	}
	return "", reason.New(reason.CapabilityUnknownMode, fmt.Sprintf("%q is not a mode", s), "",
		"write observe, shadow, proposal or production")
}

// Valid reports whether m is one of the four modes.
func (m Mode) Valid() bool { return m.rank() > 0 }

// rank counts the modes from 1; anything that is not a mode ranks below all of them, so it permits nothing.
func (m Mode) rank() int {
	switch m {
	case Observe:
		return 1
	case Shadow:
		return 2
	case Proposal:
		return 3
	case Production:
		return 4
	}
	return 0
}

// AtLeast reports whether m permits all that floor permits. It is false when either is not a mode.
func (m Mode) AtLeast(floor Mode) bool { return floor.Valid() && m.rank() >= floor.rank() }

// Meet returns the lower of the two modes. What is not a mode is lower than every mode.
func (m Mode) Meet(other Mode) Mode {
	if m.rank() <= other.rank() {
		return m
	}
	return other
}

// Join returns the higher of the two modes.
func (m Mode) Join(other Mode) Mode {
	if m.rank() >= other.rank() {
		return m
	}
	return other
}

// Ceiling returns the greatest kind of effect under m; that of what is not a mode is NoEffects.
func (m Mode) Ceiling() EffectCeiling {
	switch m {
	case Observe:
		return LocalResults
	case Shadow:
		return IsolatedResults
	case Proposal:
		return Candidates
	case Production:
		return OperationalEffects
	}
	return NoEffects
}
