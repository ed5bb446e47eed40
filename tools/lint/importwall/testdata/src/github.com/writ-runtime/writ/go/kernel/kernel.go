package kernel

import (
	_ "fmt"
	_ "github.com/writ-runtime/writ/go/journal" // want `go/kernel may not import go/journal`
	_ "github.com/writ-runtime/writ/go/reason"
	_ "github.com/writ-runtime/writ/testing/fixture" // want `what ships does not import plugins, tests or tools`
)
