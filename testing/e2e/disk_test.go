package e2e_test

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// diskRole is set in a process that holds a file system of its own.
const diskRole = "WRIT_E2E_DISK"

// heldDisk is a small file system in the mount namespace of a process that does nothing
// but hold it: nothing is mounted where somebody else could see it, and nothing is left
// when it ends.
type heldDisk struct {
	cmd   *exec.Cmd
	in    io.WriteCloser
	lines *bufio.Reader
}

// holdDisk is the process that holds a disk: it mounts one with each line of options.
func holdDisk() int {
	point := os.Getenv(diskRole)
	mount := func(options string, flags uintptr) error {
		return unix.Mount("writ-e2e", point, "tmpfs", flags, options)
	}
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		fmt.Println("make the mounts private:", err)
		return 1
	}
	lines := bufio.NewScanner(os.Stdin)
	for flags := uintptr(0); lines.Scan(); flags = unix.MS_REMOUNT {
		options := lines.Text()
		if options == "ro" {
			options, flags = "", flags|unix.MS_RDONLY
		}
		if err := mount(options, flags); err != nil {
			fmt.Println("mount a tmpfs:", err)
			return 1
		}
		fmt.Println("mounted")
	}
	return 0
}

// disk mounts a file system of a size. From then on the script's programs run where it
// can be seen.
func disk(ts *script, args []string) error {
	if len(args) != 2 {
		return errUsage
	}
	point := ts.MkAbs("disk-" + args[0])
	if err := os.MkdirAll(point, 0o755); err != nil {
		return err
	}
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = []string{diskRole + "=" + point}
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNS, Pdeathsig: syscall.SIGKILL}
	if os.Geteuid() != 0 {
		cmd.SysProcAttr.Cloneflags |= syscall.CLONE_NEWUSER
		cmd.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}}
		cmd.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}}
	}
	d := &heldDisk{cmd: cmd}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if d.in, err = cmd.StdinPipe(); err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("this test mounts a small file system: run it as root, or where people may make user and mount namespaces "+
			"(sysctl kernel.unprivileged_userns_clone=1, no AppArmor rule against it): %w", err)
	}
	d.lines = bufio.NewReader(out)
	ts.Defer(func() {
		_ = d.in.Close()
		_ = d.cmd.Wait()
	})
	disks(ts)[args[0]], disks(ts)[latest] = d, d
	ts.Setenv(args[0], point)
	return d.mount("size=" + args[1])
}

// latest is the name of the disk that was made last.
const latest = ""

// within returns a command line that runs args where the script's disk can be seen. Only
// a process of one thread may enter another user namespace, so it is not done here.
func within(ts *script, args []string) []string {
	d, ok := disks(ts)[latest]
	if !ok {
		return args
	}
	enter := []string{"nsenter", "--mount", "--target", strconv.Itoa(d.cmd.Process.Pid)}
	if os.Geteuid() != 0 {
		enter = append(enter, "--user", "--preserve-credentials")
	}
	return append(append(enter, "sh", "-c", `cd "$0" && exec "$@"`, ts.MkAbs(".")), args...)
}

func remount(ts *script, args []string) error {
	if len(args) != 2 {
		return errUsage
	}
	d, ok := disks(ts)[args[0]]
	if !ok {
		return fmt.Errorf("no disk is named %s", args[0])
	}
	return d.mount(args[1])
}

func (d *heldDisk) mount(options string) error {
	if _, err := fmt.Fprintln(d.in, options); err != nil {
		return err
	}
	line, err := d.lines.ReadString('\n')
	if err != nil || strings.TrimSpace(line) != "mounted" {
		return fmt.Errorf("%s: %s%w", options, line, err)
	}
	return nil
}

// disksKey is where a script keeps its disks.
type disksKey struct{}

func disks(ts *script) map[string]*heldDisk { return ts.Value(disksKey{}).(map[string]*heldDisk) }
