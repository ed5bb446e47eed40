package reason_test

import (
	_ "github.com/writ-runtime/writ/go/journal" // want `go/reason may not import go/journal`
	_ "github.com/writ-runtime/writ/testing/fixture"
)
