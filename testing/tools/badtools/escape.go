package main

import (
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"
	"unsafe"
)

// trap reads memory that no guest has.
func trap([]string) error {
	var near byte
	b := *(*byte)(unsafe.Add(unsafe.Pointer(&near), 0xf000_0000))
	return fmt.Errorf("read %d", b)
}

// symlink must be told EPERM, and nothing must be there afterwards.
func symlink([]string) error {
	err := os.Symlink("../../etc/passwd", "link")
	if !errors.Is(err, syscall.EPERM) {
		return fmt.Errorf("symlink answered %v", err)
	}
	if _, err := os.Lstat("link"); !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("lstat after symlink answered %v", err)
	}
	return write("ok", err.Error()+"\n")
}

func hardlink([]string) error {
	if err := write("first", "one\n"); err != nil {
		return err
	}
	if err := os.Link("first", "second"); !errors.Is(err, syscall.EPERM) {
		return fmt.Errorf("link answered %v", err)
	}
	return write("ok", "not permitted\n")
}

// outside looks for the host everywhere, and for a way to write beside its workspace.
func outside([]string) error {
	for _, p := range []string{
		"/etc/passwd", "../../etc/passwd", "/work/../../etc/passwd", "/inputs/../../../../etc/passwd", "/proc/self/environ", "/dev/null",
		"//etc/passwd", "/./etc/passwd", "/proc/self/fd/4", "/tmp",
	} {
		if _, err := os.ReadFile(p); err == nil {
			return fmt.Errorf("read %s", p)
		}
		if _, err := os.Stat(p); err == nil {
			return fmt.Errorf("stat %s", p)
		}
	}
	entries, err := os.ReadDir("/")
	if err != nil {
		return err
	}
	if len(entries) != 2 || entries[0].Name() != "inputs" || entries[1].Name() != "work" {
		return fmt.Errorf("the root holds %v", entries)
	}
	for _, p := range []string{"/new", "/inputs/new", "../new"} {
		if err := write(p, "x"); err == nil {
			return fmt.Errorf("wrote %s", p)
		}
	}
	return write("ok", "nothing outside\n")
}

// inputs tries every change of its first input.
func inputs(args []string) error {
	p := filepath.Join("/inputs", args[0])
	changes := map[string]func() error{
		"write":    func() error { return write(p, "x") },
		"truncate": func() error { return os.Truncate(p, 0) },
		"remove":   func() error { return os.Remove(p) },
		"rename":   func() error { return os.Rename(p, "/work/mine") },
		"replace": func() error {
			if err := write("mine", "x"); err != nil {
				return nil
			}
			return os.Rename("/work/mine", p)
		},
		"append": func() error {
			f, err := os.OpenFile(p, os.O_APPEND|os.O_WRONLY, 0)
			if err != nil {
				return err
			}
			return f.Close()
		},
	}
	for what, change := range changes {
		if err := change(); err == nil {
			return fmt.Errorf("could %s an input", what)
		}
	}
	return write("ok", "read-only\n")
}

// network tries the only calls of this platform that have to do with it. Go's net package talks to itself there.
func network([]string) error {
	if _, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM, 0); err == nil {
		return errors.New("made a socket")
	}
	for fd := 3; fd < 64; fd++ {
		if _, _, err := syscall.Accept(fd); err == nil {
			return fmt.Errorf("accepted a connection on descriptor %d", fd)
		}
	}
	return write("ok", "no network\n")
}

// observe writes down everything about its surroundings that a tool can see: equal runs must write equal bytes.
func observe([]string) error {
	random := make([]byte, 64)
	if _, err := rand.Read(random); err != nil {
		return err
	}
	m := map[string]int{}
	for i := range 100 {
		m[fmt.Sprint(i)] = i
	}
	order := ""
	for k := range m { // the runtime's own seed shows in this order
		order += k + " "
	}
	text := fmt.Sprintf("now %s\nlater %s\nrandom %x\norder %s\nenvironment %q\nargs %q\n", time.Now().UTC(), time.Since(time.Unix(0, 0)), random, order, os.Environ(), os.Args)
	done := make(chan string)
	go func() { time.Sleep(time.Second); done <- "slept" }()
	text += <-done + "\n"
	info, err := os.Stat(".")
	if err != nil {
		return err
	}
	text += fmt.Sprintf("%s %s\n", info.Mode(), info.ModTime().UTC())
	fmt.Print(text)
	return write("observed.txt", text)
}
