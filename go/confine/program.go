package confine

import (
	"fmt"
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// A filter program is assembled here and not by a library, because the one at hand (go-seccomp-bpf 1.6.0) goes on
// comparing system call numbers with whatever argument its last condition loaded: mmap with prot 5, which was to be
// denied, became fstat, which was allowed. Here every rule ends in its own answer, so that nothing is left over.

// rule allows one system call, if its condition holds.
type rule struct {
	number uint32
	// arg is the argument that the condition looks at. The upper 32 bits of it have to be zero.
	arg int
	// among forbids every bit outside of it; equal demands a value. At most one is set; neither is no condition.
	among, equal *uint32
}

// The layout of the kernel's struct seccomp_data on a little-endian machine.
const (
	offsetNumber = 0
	offsetArch   = 4
	offsetArgs   = 16
)

// x32Bit marks the calls of the x32 interface, which share amd64's architecture value.
const x32Bit = 0x4000_0000

func statement(code uint16, k uint32) unix.SockFilter { return unix.SockFilter{Code: code, K: k} }

func jump(code uint16, k uint32, yes, no uint8) unix.SockFilter {
	return unix.SockFilter{Code: code, K: k, Jt: yes, Jf: no}
}

const (
	load      = unix.BPF_LD | unix.BPF_W | unix.BPF_ABS
	ifEqual   = unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K
	ifAtLeast = unix.BPF_JMP | unix.BPF_JGE | unix.BPF_K
	and       = unix.BPF_ALU | unix.BPF_AND | unix.BPF_K
	ifAnyBit  = unix.BPF_JMP | unix.BPF_JSET | unix.BPF_K
	answer    = unix.BPF_RET | unix.BPF_K
)

// assemble returns the program that allows what the rules allow and gives everything else the answer otherwise.
// Calls of another architecture kill the process in any case.
func assemble(rules []rule, otherwise uint32) []unix.SockFilter {
	p := []unix.SockFilter{
		statement(load, offsetArch),
		jump(ifEqual, unix.AUDIT_ARCH_X86_64, 1, 0),
		statement(answer, unix.SECCOMP_RET_KILL_PROCESS),
		statement(load, offsetNumber),
		jump(ifAtLeast, x32Bit, 0, 1),
		statement(answer, unix.SECCOMP_RET_KILL_PROCESS),
	}
	for _, r := range rules {
		body := r.body(otherwise)
		p = append(p, jump(ifEqual, r.number, 0, uint8(len(body))))
		p = append(p, body...)
	}
	return append(p, statement(answer, otherwise))
}

// body is what follows once the number has matched: it always answers.
func (r rule) body(otherwise uint32) []unix.SockFilter {
	if r.among == nil && r.equal == nil {
		return []unix.SockFilter{statement(answer, unix.SECCOMP_RET_ALLOW)}
	}
	low := uint32(offsetArgs + 8*r.arg)
	test := jump(ifEqual, 0, 1, 0)
	if r.equal != nil {
		test.K = *r.equal
	} else {
		test = jump(ifAnyBit, ^*r.among, 0, 1)
	}
	return []unix.SockFilter{
		statement(load, low+4),
		jump(ifEqual, 0, 1, 0),
		statement(answer, otherwise),
		statement(load, low),
		test,
		statement(answer, otherwise),
		statement(answer, unix.SECCOMP_RET_ALLOW),
	}
}

// loadFilter applies a program to every thread of the process (TSYNC), or to none.
func loadFilter(program []unix.SockFilter) error {
	// The thread must not change while the kernel looks at all others.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	prog := unix.SockFprog{Len: uint16(len(program)), Filter: &program[0]}
	r, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, unix.SECCOMP_FILTER_FLAG_TSYNC, uintptr(unsafe.Pointer(&prog)))
	runtime.KeepAlive(program)
	if errno != 0 {
		return unsupported("the seccomp filter cannot be loaded", "seccomp", errno)
	}
	if r != 0 { // the number of a thread that could not be brought into line; nothing was applied then
		return unsupported("the seccomp filter cannot be applied to every thread", fmt.Sprintf("thread %d", r), nil)
	}
	return nil
}
