package purity_test

import (
	"testing"

	"github.com/writ-runtime/writ/tools/lint/linttest"
	"github.com/writ-runtime/writ/tools/lint/purity"
)

func TestAnalyzer(t *testing.T) {
	linttest.Run(t, purity.Analyzer, "github.com/writ-runtime/writ/go/kernel", "github.com/writ-runtime/writ/go/journal")
}
