package importwall_test

import (
	"testing"

	"github.com/writ-runtime/writ/tools/lint/importwall"
	"github.com/writ-runtime/writ/tools/lint/linttest"
)

func TestAnalyzer(t *testing.T) {
	linttest.Run(t, importwall.Analyzer, "github.com/writ-runtime/writ/go/kernel", "github.com/writ-runtime/writ/go/reason", "github.com/writ-runtime/writ/plugins/adapters/a", "github.com/writ-runtime/writ/testing/e2e")
}
