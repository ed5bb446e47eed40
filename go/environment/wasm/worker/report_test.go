package worker_test

import (
	"testing"

	"github.com/writ-runtime/writ/go/canonical"
	"github.com/writ-runtime/writ/go/environment/wasm/worker"
)

func TestReportIsWhatIsExpected(t *testing.T) {
	module := shared.badtools(t)
	w, report := provisioned(t, limits(), module)
	table, err := worker.Facts()
	must(t, err)
	e, err := worker.Expectation(worker.Expected{
		Name: w.Name(), Generation: w.Order().Generation, WorkerDigest: canonical.Sum(read(t, shared.workerPath(t))), ModuleDigest: canonical.Sum(module), Limits: limits(),
	})
	must(t, err)
	for _, d := range table.Compare(e, report) {
		t.Errorf("%+v", d)
	}
	for _, f := range report.Facts {
		t.Logf("%+v", f)
	}
}
