package workorder

import (
	"fmt"

	"github.com/writ-runtime/writ/go/canonical"
	"github.com/writ-runtime/writ/go/reason"
)

// Phase says which kinds of operation a fence still permits.
type Phase string

// The phases of a fence.
const (
	// Live permits every granted kind.
	Live Phase = "live"
	// Closing permits only what stops, keeps or removes: cancel, freeze, collect,
	// cleanup, reset, destroy, and asking.
	Closing Phase = "closing"
)

// Fence is the right to act for an attempt. A newer generation makes every older one
// stale.
type Fence struct {
	Attempt    AttemptID `json:"attempt"`
	Generation uint64    `json:"generation"`
	Phase      Phase     `json:"phase"`
}

// ResourceName is the name of whatever lives for the attempt under this fence:
// process, directory, cgroup. Nobody needs a handle to find it after a crash.
func (f Fence) ResourceName() string { return fmt.Sprintf("%s.g%d", f.Attempt, f.Generation) }

// Budget is what is reserved for an attempt before its lease. Zero means none.
type Budget struct {
	Calls      int64  `json:"calls"`
	Retries    int64  `json:"retries"`
	Repairs    int64  `json:"repairs"`
	Tokens     int64  `json:"tokens"`
	WallMillis int64  `json:"wall_ms"`
	Money      *Money `json:"money,omitempty"`
}

// Reservation allocates an attempt and grants nothing. The digests are of what the
// attempt bundle must be compiled from; activation compares each (B11).
type Reservation struct {
	Kind      string           `json:"kind"`
	ID        ReservationID    `json:"id"`
	WorkOrder ID               `json:"work_order"`
	Order     canonical.Digest `json:"work_order_digest"`
	Attempt   AttemptID        `json:"attempt"`
	Ordinal   int64            `json:"ordinal"`
	Fence     Fence            `json:"fence"`
	Budget    Budget           `json:"budget"`
	// Account is the account that the budget is drawn from, empty if it is the order's own
	// matter. Price is what one run of the tool costs; nil where the deployment says none.
	Account string `json:"account,omitempty"`
	Price   *Money `json:"price,omitempty"`
	// ExpiresUnixMilli is when preparation must be over; a later activation is refused.
	ExpiresUnixMilli int64   `json:"expires_unix_ms"`
	Digests          Digests `json:"digests"`
}

// Digests names each part of an attempt bundle that its reservation fixes.
type Digests struct {
	Role        canonical.Digest `json:"role"`
	Context     canonical.Digest `json:"context"`
	Prompt      canonical.Digest `json:"prompt"`
	Environment canonical.Digest `json:"environment"`
	// Grant is the digest of the requested grants: the effective ones are compiled
	// from them and can only be narrower.
	Grant  canonical.Digest `json:"grant"`
	Fence  canonical.Digest `json:"fence"`
	Budget canonical.Digest `json:"budget"`
}

// Compare refuses the first part in which got differs from d.
func (d Digests) Compare(got Digests) error {
	for _, part := range []struct {
		name      string
		want, got canonical.Digest
	}{
		{"role", d.Role, got.Role},
		{"context", d.Context, got.Context},
		{"prompt", d.Prompt, got.Prompt},
		{"environment", d.Environment, got.Environment},
		{"grant", d.Grant, got.Grant},
		{"fence", d.Fence, got.Fence},
		{"budget", d.Budget, got.Budget},
	} {
		if !part.want.Valid() || part.want != part.got {
			return reason.New(reason.BundleDigestMismatch,
				fmt.Sprintf("the %s of the attempt bundle is %s, the reservation fixed %s", part.name, part.got, part.want),
				part.name, "submit the work order again: a reservation is for exactly one bundle")
		}
	}
	return nil
}

// Descriptor is what activation makes of a reservation: the attempt, bound for ever
// to one bundle (B12).
type Descriptor struct {
	Kind        string           `json:"kind"`
	Attempt     AttemptID        `json:"attempt"`
	WorkOrder   ID               `json:"work_order"`
	Reservation canonical.Digest `json:"reservation"`
	Bundle      canonical.Digest `json:"bundle"`
	Fence       Fence            `json:"fence"`
}

// Conclusion is how an attempt ended, in the words an operator sees and every exit
// code follows (L4).
type Conclusion string

// The conclusions. None of them can stand for another.
const (
	Succeeded Conclusion = "succeeded"
	Failed    Conclusion = "failed"
	Timeout   Conclusion = "timeout"
	Cancelled Conclusion = "cancelled"
	Lost      Conclusion = "lost"
	Unknown   Conclusion = "unknown"
)

// Exit is the registered exit of a conclusion: each has its own.
func (c Conclusion) Exit() reason.Exit {
	switch c {
	case Succeeded:
		return reason.ExitOK
	case Timeout:
		return reason.ExitTimeout
	case Cancelled:
		return reason.ExitCancelled
	case Lost:
		return reason.ExitLost
	case Unknown:
		return reason.ExitUnknown
	}
	return reason.ExitFailed
}

// Result is what an attempt comes to: a report for the reducers, not a change of
// state.
type Result struct {
	Kind       string      `json:"kind"`
	Attempt    AttemptID   `json:"attempt"`
	Conclusion Conclusion  `json:"conclusion"`
	Code       reason.Code `json:"code,omitempty"`
	Detail     string      `json:"detail,omitempty"`
	Remedy     string      `json:"remedy,omitempty"`
	// Stage is the operation kind at which it did not succeed.
	Stage string `json:"stage,omitempty"`
	// Manifest is the digest of the frozen outputs, Structured of the validated result.
	Manifest   canonical.Digest `json:"manifest,omitempty"`
	Structured canonical.Digest `json:"structured,omitempty"`
}
