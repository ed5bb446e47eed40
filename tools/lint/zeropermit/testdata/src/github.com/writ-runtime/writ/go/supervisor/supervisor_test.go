package supervisor

import "github.com/writ-runtime/writ/go/ledger"

var zero ledger.Permit
