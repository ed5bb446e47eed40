package executor

import (
	"fmt"
	"slices"

	"github.com/writ-runtime/writ/go/api/wire"
	"github.com/writ-runtime/writ/go/canonical"
	"github.com/writ-runtime/writ/go/operation"
	"github.com/writ-runtime/writ/go/reason"
)

// CapabilitiesKind is the registered kind of a capability manifest.
const CapabilitiesKind = "writ.executor_capabilities.v1"

// Capabilities is what an adapter's vendor declares in the manifest that the lock file pins. The adapter itself must
// say the same when it is asked.
type Capabilities struct {
	Kind string `json:"kind"`
	// Protocols lists the protocol versions it speaks, "writ.executor.v1".
	Protocols []string `json:"protocols"`
	// Operations lists the kinds it answers; prepare, start, cancel, collect and cleanup are never left out.
	Operations []operation.Kind `json:"operations"`
	// Environments lists the isolation classes it can run in: trusted_local, ephemeral_isolated.
	Environments []string `json:"environments"`
	// Tools lists the kinds of tool it can have launched: "wasm", "command".
	Tools []string `json:"tools"`
	// Checkpoint says whether it can propose checkpoints.
	Checkpoint bool `json:"checkpoint"`
	// Effects declares how a lost answer of each listed operation is treated (O6).
	Effects []EffectDeclaration `json:"effects"`
}

// EffectDeclaration declares the effect class of one operation kind.
type EffectDeclaration struct {
	Operation operation.Kind        `json:"operation"`
	Class     operation.EffectClass `json:"effect_class"`
}

// ParseCapabilities reads the manifest of a lock entry. where names it in refusals, which have code pin.malformed.
func ParseCapabilities(raw []byte, where string) (Capabilities, error) {
	bad := func(what string) (Capabilities, error) {
		return Capabilities{}, reason.New(reason.PinMalformed, "the capability manifest "+what, where, "ask the adapter's vendor for a manifest of this release")
	}
	var c Capabilities
	if len(raw) == 0 {
		return bad("is missing")
	}
	if err := canonical.Decode(raw, &c); err != nil {
		return Capabilities{}, reason.New(reason.PinMalformed, "the capability manifest is malformed", where,
			"ask the adapter's vendor for a manifest of this release").Because(err)
	}
	if c.Kind != CapabilitiesKind {
		return bad("is not of kind " + CapabilitiesKind)
	}
	for _, need := range []operation.Kind{operation.Prepare, operation.Start, operation.Cancel, operation.Collect, operation.Cleanup} {
		if !slices.Contains(c.Operations, need) {
			return bad(fmt.Sprintf("leaves out %s", need))
		}
	}
	for _, kind := range c.Operations {
		class := c.Class(kind)
		if !executes(kind) || !class.Valid() {
			return bad(fmt.Sprintf("lists %q with effect class %q", kind, class))
		}
	}
	if c.Checkpoint != slices.Contains(c.Operations, operation.Checkpoint) {
		return bad("contradicts itself about checkpoints")
	}
	return c, nil
}

// executes reports whether a kind is one of the executor protocol's.
func executes(k operation.Kind) bool {
	switch k {
	case operation.Prepare, operation.Start, operation.Checkpoint, operation.Cancel, operation.Collect, operation.Cleanup:
		return true
	}
	return false
}

// Class returns the declared effect class of a kind, empty if none is declared.
func (c Capabilities) Class(kind operation.Kind) operation.EffectClass {
	for _, e := range c.Effects {
		if e.Operation == kind {
			return e.Class
		}
	}
	return ""
}

// Supports refuses what the adapter does not declare (adapter.unsupported): this protocol, an isolation class, a kind
// of tool. It is asked before activation, so that nothing runs in vain (R7).
func (c Capabilities) Supports(isolation, tool string) error {
	lacks := func(what, name string) error {
		return reason.New(reason.AdapterUnsupported, fmt.Sprintf("the adapter does not declare %s %q", what, name), name,
			"choose an executor that does: `writ version` lists those there are")
	}
	switch {
	case !slices.Contains(c.Protocols, wire.Protocol):
		return lacks("protocol", wire.Protocol)
	case !slices.Contains(c.Environments, isolation):
		return lacks("isolation class", isolation)
	case !slices.Contains(c.Tools, tool):
		return lacks("tools of kind", tool)
	}
	return nil
}

// Digest is the digest of the capabilities in canonical JSON: what an adapter's own word is compared by.
func (c Capabilities) Digest() (canonical.Digest, error) { return canonical.DigestOf(c) }
