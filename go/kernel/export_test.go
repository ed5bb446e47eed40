package kernel

import "github.com/writ-runtime/writ/go/lifecycle"

// At returns the state with one machine standing elsewhere, as if events had led there.
func (s State) At(machine string, state lifecycle.State) State {
	s = s.clone()
	at := s.standings[s.subject(machine)]
	s.standings[s.subject(machine)] = Standing{State: state, Version: at.Version + 1, Machine: 1}
	return s
}
