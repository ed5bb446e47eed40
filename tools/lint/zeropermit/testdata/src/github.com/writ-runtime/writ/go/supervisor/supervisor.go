package supervisor

import l "github.com/writ-runtime/writ/go/ledger"

type Permit struct{}

type alias = l.Permit

type holder struct{ p l.Permit }

func f() (l.Permit, error) {
	_ = l.Permit{}        // want `a zero ledger.Permit`
	_ = &l.Permit{}       // want `a zero ledger.Permit`
	_ = alias{}           // want `a zero ledger.Permit`
	_ = new(l.Permit)     // want `a zero ledger.Permit`
	var p l.Permit        // want `a zero ledger.Permit`
	_ = []l.Permit{p, {}} // want `a zero ledger.Permit`
	_ = Permit{}
	var q = p
	h := holder{p: q}
	_ = h
	return l.Mint()
}
