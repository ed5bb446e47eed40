package sqlite_test

import (
	"testing"

	"github.com/writ-runtime/writ/go/journal"
	"github.com/writ-runtime/writ/go/journal/sqlite"
	"github.com/writ-runtime/writ/go/journal/storetest"
)

func open(t testing.TB, dir string, write bool) journal.Store {
	t.Helper()
	s, err := sqlite.Open(t.Context(), dir, sqlite.Options{Write: write, Activity: "go test"})
	if err != nil {
		t.Fatalf("Open: %v", err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func TestConformance(t *testing.T) { storetest.Run(t, open) }
