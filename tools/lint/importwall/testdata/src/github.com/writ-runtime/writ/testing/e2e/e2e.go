package e2e

import _ "github.com/writ-runtime/writ/go/journal"
