package adapterhost_test

import (
	"testing"

	"github.com/writ-runtime/writ/go/adapterhost"
	"github.com/writ-runtime/writ/go/operation"
)

// BenchmarkStart is from nothing to the first answer, and back to nothing.
func BenchmarkStart(b *testing.B) {
	c := config(b, "reference-local", reference(b))
	for b.Loop() {
		h, err := adapterhost.Launch(b.Context(), c)
		if err != nil {
			b.Fatal(err)
		}
		_ = h.Close()
	}
}

// BenchmarkCollect is one warm call without a host service.
func BenchmarkCollect(b *testing.B) {
	r := newRig(b, config(b, "reference-local", reference(b)))
	c, q := r.call(operation.Collect)
	for b.Loop() {
		if _, err := r.session.Collect(b.Context(), c, q, "h"); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkPoll is one warm call that asks one host service.
func BenchmarkPoll(b *testing.B) {
	r := newRig(b, config(b, "reference-local", reference(b)))
	c, q := r.call(operation.Start)
	if _, err := r.session.Start(b.Context(), c, q, "h"); err != nil {
		b.Fatal(err)
	}
	r.desk.end(b)
	for b.Loop() {
		if s, err := r.session.Poll(b.Context(), c, "h", 0); err != nil || !s.Completed {
			b.Fatal(s, err)
		}
	}
}
