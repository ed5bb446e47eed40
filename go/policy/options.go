package policy

import (
	"time"

	"github.com/writ-runtime/writ/go/canonical"
	"github.com/writ-runtime/writ/go/capability"
)

// Options configure an Engine. Registry is needed; the zero value of everything else is a default.
type Options struct {
	// Registry holds the registered actions.
	Registry *capability.Registry
	// Pins are the digests that the layers must have; a layer without a pin is not compared.
	Pins map[capability.Layer]canonical.Digest
	// Timeout bounds the evaluation of one layer; 2 s by default.
	Timeout time.Duration
	// MaxAnswer bounds the JSON of one layer's decision, in bytes; 1 MiB by default.
	MaxAnswer int
	// Memo is how many decisions are kept for the same input; 1024 by default, none below zero.
	Memo int
}

func (o Options) withDefaults() Options {
	if o.Timeout <= 0 {
		o.Timeout = defaultTimeout
	}
	if o.MaxAnswer <= 0 {
		o.MaxAnswer = 1 << 20
	}
	if o.Memo == 0 {
		o.Memo = 1024
	}
	return o
}
