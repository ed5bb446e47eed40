package noglobals_test

import (
	"testing"

	"github.com/writ-runtime/writ/tools/lint/linttest"
	"github.com/writ-runtime/writ/tools/lint/noglobals"
)

func TestAnalyzer(t *testing.T) {
	linttest.Run(t, noglobals.Analyzer, "a")
}
