package zeropermit_test

import (
	"testing"

	"github.com/writ-runtime/writ/tools/lint/linttest"
	"github.com/writ-runtime/writ/tools/lint/zeropermit"
)

func TestAnalyzer(t *testing.T) {
	linttest.Run(t, zeropermit.Analyzer, "github.com/writ-runtime/writ/go/supervisor", "github.com/writ-runtime/writ/go/ledger")
}
