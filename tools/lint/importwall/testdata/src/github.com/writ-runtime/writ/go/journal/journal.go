package journal

import _ "github.com/writ-runtime/writ/go/reason"
