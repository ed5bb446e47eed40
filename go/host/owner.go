package host

import (
	"os"
	"syscall"

	"github.com/writ-runtime/writ/go/reason"
)

// ownerOf returns the user id that owns the state folder.
func ownerOf(state string) (int, error) {
	info, err := os.Stat(state)
	if err != nil {
		return 0, reason.New(reason.JournalIO, "the state folder cannot be looked at", state, "check its permissions").Because(err)
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return 0, reason.New(reason.EnvironmentUnsupported, "this system does not say who owns a folder", state, "run on Linux")
	}
	return int(st.Uid), nil
}
