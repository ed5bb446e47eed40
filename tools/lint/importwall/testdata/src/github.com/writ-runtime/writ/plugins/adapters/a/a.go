package a

import (
	_ "github.com/writ-runtime/writ/go/journal" // want `plugins/adapters/a may not import go/journal`
	_ "github.com/writ-runtime/writ/go/sdk"
)
