package nopanic_test

import (
	"testing"

	"github.com/writ-runtime/writ/tools/lint/linttest"
	"github.com/writ-runtime/writ/tools/lint/nopanic"
)

func TestAnalyzer(t *testing.T) {
	linttest.Run(t, nopanic.Analyzer, "a", "b")
}
