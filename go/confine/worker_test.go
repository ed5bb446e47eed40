package confine_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/writ-runtime/writ/testing/built"
)

var programs *built.Builder

func TestMain(m *testing.M) { os.Exit(built.Run(m, func(b *built.Builder) { programs = b })) }

func probePath(t testing.TB) string {
	return programs.Path(t, "WRIT_TEST_CONFINEPROBE", "github.com/writ-runtime/writ/testing/confineprobe", "CGO_ENABLED=0")
}

// probe runs the probe and returns what it printed and the signal that killed it, 0 when it ended itself.
func probe(t *testing.T, what string) (string, syscall.Signal) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, probePath(t), what)
	cmd.Env = []string{}
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	status := cmd.ProcessState.Sys().(syscall.WaitStatus)
	if !status.Signaled() {
		return out.String(), 0
	}
	return out.String(), status.Signal()
}

func TestConfinedProcessDiesAtWhatItIsDenied(t *testing.T) {
	for _, what := range []string{
		"open", "openat", "openat2", "stat", "socket", "socketpair", "connect", "sendmsg", "recvmsg", "execve", "execveat", "fork", "vfork",
		"clone process", "clone user ns", "clone3", "ptrace", "process_vm_readv", "io_uring_setup", "mount", "unshare", "setns", "bpf", "keyctl",
		"userfaultfd", "perf_event_open", "memfd_create", "pidfd_open", "kill parent", "tgkill parent", "tkill parent", "seccomp", "prctl",
		"prlimit64", "setuid", "capset", "ioctl", "fcntl", "dup", "fstat", "getdents64", "mmap exec", "mmap all", "mmap high bits",
		"mprotect exec", "pkey_mprotect", "x32 getpid",
	} {
		t.Run(what, func(t *testing.T) {
			out, signal := probe(t, what)
			if out != "confined\n" || signal != syscall.SIGSYS {
				t.Errorf("printed %q, killed by %v; want death by SIGSYS after confinement", out, signal)
			}
		})
	}
}

func TestConfinedProcessCanWork(t *testing.T) {
	for _, what := range []string{"work", "allowed getpid", "allowed mmap", "allowed tgkill"} {
		out, signal := probe(t, what)
		if !strings.HasPrefix(out, "confined\nsurvived: ") || signal != 0 {
			t.Errorf("%s: printed %q, killed by %v", what, out, signal)
		}
	}
}

func TestMemoryOfTheProcessIsBounded(t *testing.T) {
	// How the Go runtime dies when the kernel refuses it memory is not always told: mostly
	// it says so, at times a collector's thread faults first. That it dies is what counts.
	out, _ := probe(t, "memory")
	died := strings.Contains(out, "out of memory") || strings.Contains(out, "cannot allocate memory") || strings.Contains(out, "SIGSEGV")
	if strings.Contains(out, "survived") || !died {
		t.Errorf("printed %.300q", out)
	}
}

func TestProcessorTimeIsBounded(t *testing.T) {
	out, signal := probe(t, "spin")
	if out != "confined\ntold\n" || signal != syscall.SIGKILL {
		t.Errorf("printed %q, killed by %v; want to be told, and then death by SIGKILL", out, signal)
	}
}

// TestConfinementNeedsNoPrivileges runs the probe as nobody. A test that is not root has run everything above
// without privileges already.
func TestConfinementNeedsNoPrivileges(t *testing.T) {
	if os.Getuid() != 0 {
		return
	}
	binary, err := os.Open(probePath(t))
	if err != nil {
		t.Fatal(err)
	}
	defer binary.Close()
	for what, want := range map[string]string{"work": "confined\nsurvived: work\n", "socket": "confined\n"} {
		// Through a descriptor, since nobody may not look into root's directories.
		cmd := exec.Command("/proc/self/fd/3", what)
		cmd.ExtraFiles = []*os.File{binary}
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
		out, err := cmd.CombinedOutput()
		if string(out) != want || (err == nil) != (what == "work") {
			t.Errorf("%s as nobody: %v, printed %q", what, err, out)
		}
	}
}
