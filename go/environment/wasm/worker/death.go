package worker

import (
	"os"
	"strings"
	"syscall"

	"github.com/writ-runtime/writ/go/reason"
)

// died says how a worker ended that nobody asked to end.
func died(name string, state *os.ProcessState, stderr string) *reason.Refusal {
	code, what := reason.EnvironmentDead, "the worker ended: "+state.String()
	if status, ok := state.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		switch status.Signal() {
		case syscall.SIGSYS:
			what = "the kernel killed the worker at a system call that it is denied"
		case syscall.SIGXCPU:
			code, what = reason.EnvironmentLimitCpu, "the kernel killed the worker at its limit of processor time"
		case syscall.SIGKILL:
			what = "the worker was killed from outside or by the kernel (out of memory, or its hard limit of processor time)"
		}
	}
	if strings.Contains(stderr, "out of memory") || strings.Contains(stderr, "cannot allocate memory") {
		code, what = reason.EnvironmentLimitMemory, "the worker ran out of the memory that it may take (RLIMIT_DATA)"
	}
	if line := firstLine(stderr); line != "" {
		what += "; it said: " + line
	}
	return reason.New(code, what, name, "nothing of it is left; make a new attempt, with larger limits where one was named")
}

func firstLine(s string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(s), "\n")
	if len(line) > 200 {
		line = line[:200] + "…"
	}
	return strings.ToValidUTF8(line, "?")
}
