// Package confine starts child processes that cannot outlive this one unnoticed, and takes rights away from the
// process that runs WebAssembly tools.
//
// # Children
//
// A Starter starts every child from one goroutine that never leaves its thread, because the kernel sends a
// child its death signal when the *thread* that started it ends, not the process. A Child is killed and awaited
// through a pidfd, never through a number that may have been given to somebody else.
//
// # The WebAssembly worker
//
// Worker takes everything away from the calling process that a worker does not need after it has compiled its
// tool. What is enforced by what:
//
//	files of the host      Landlock with every right handled and no rule; and no system call that opens anything
//	network, processes     seccomp: no socket, execve, fork, ptrace, mount, unshare, io_uring, bpf, keyctl …
//	new machine code       seccomp: no executable mapping, so code has to be compiled before
//	signals                seccomp: tgkill to itself only
//	privileges             no_new_privs, all capability sets emptied
//	memory of the guest    the allocator of the worker (WebAssembly pages); not a task of this package
//	memory of the worker   RLIMIT_DATA, which counts private writable memory. RLIMIT_AS cannot be used with Go,
//	                       which reserves address space that it does not touch. A cgroup is not used here
//	processor time         RLIMIT_CPU: SIGXCPU at the limit, SIGKILL one second later
//	written files, cores   RLIMIT_FSIZE 0, RLIMIT_CORE 0
//	descriptors            RLIMIT_NOFILE, and no system call that makes one
//	threads                RLIMIT_NPROC where the kernel applies it (never to root), the Go runtime's own
//	                       maximum, and seccomp, which lets clone make threads of this process only
//
// # Programs without an effect of their own
//
// NewContained bounds what a program of somebody else's may do besides talking over its own socket: see there.
//
// A host that lacks Landlock or seccomp, or another architecture than amd64, is refused
// (environment.unsupported): nothing here is best effort.
package confine
