package ledger

import (
	"sync/atomic"

	"github.com/writ-runtime/writ/go/canonical"
	"github.com/writ-runtime/writ/go/kernel"
	"github.com/writ-runtime/writ/go/operation"
	"github.com/writ-runtime/writ/go/protocol"
	"github.com/writ-runtime/writ/go/workorder"
)

// Permit is the only way to an effect. The ledger mints one once the intent is
// durable; it is good for one run. Its zero value permits nothing.
type Permit struct {
	minted *minted
}

type minted struct {
	intent operation.Intent
	fence  workorder.Fence
	bundle canonical.Digest
	spent  atomic.Bool
}

// repeated is the permit for an intent whose answer was lost and whose key makes it the same
// effect again. It is spent: only Resolve hands it to an effect.
func repeated(s kernel.State, in operation.Intent) Permit {
	m := &minted{intent: in, fence: s.Fence(), bundle: s.Bundle.Digest()}
	m.spent.Store(true)
	return Permit{m}
}

// Intent is the intent that the permit was minted for.
func (p Permit) Intent() operation.Intent {
	if p.minted == nil {
		return operation.Intent{}
	}
	return p.minted.intent
}

// Call is what every call to an executor, provider or host service carries (B14).
func (p Permit) Call() protocol.Call {
	if p.minted == nil {
		return protocol.Call{}
	}
	return protocol.Call{
		Bundle: p.minted.bundle, Fence: p.minted.fence,
		Operation: p.minted.intent.Key, Digest: p.minted.intent.Digest,
	}
}

// spend reports whether the permit was good and is used up by this call.
func (p Permit) spend() bool { return p.minted != nil && p.minted.spent.CompareAndSwap(false, true) }
