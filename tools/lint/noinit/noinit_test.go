package noinit_test

import (
	"testing"

	"github.com/writ-runtime/writ/tools/lint/linttest"
	"github.com/writ-runtime/writ/tools/lint/noinit"
)

func TestAnalyzer(t *testing.T) {
	linttest.Run(t, noinit.Analyzer, "a")
}
