package main

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
)

// next is the file by which a tool offers checkpoints.
const next = "/checkpoint/next.json"

// offer offers its arguments, one after the other. One that is a number stands for a checkpoint at that position.
func offer(args []string) error {
	for _, text := range args {
		if at, err := strconv.Atoi(text); err == nil {
			text = fmt.Sprintf(`{"kind":"writ.checkpoint.tool_progress.v1","next_action":"go on","position":%d,"state":{},"stop_condition":"told to"}`, at)
		}
		if err := put(text); err != nil {
			return err
		}
	}
	return nil
}

// offerThenLoop offers its arguments and never ends.
func offerThenLoop(args []string) error {
	if err := offer(args); err != nil {
		return err
	}
	return loop(nil)
}

// offerTooMuch tries to offer more than may be, and goes on without it.
func offerTooMuch([]string) error {
	if err := put(strings.Repeat("x", 1<<20)); err == nil {
		return errors.New("a checkpoint of 1 MiB was written")
	}
	return write("ok", "done without it\n")
}

// offerElsewhere tries to make more of the place of checkpoints than it is.
func offerElsewhere([]string) error {
	for what, try := range map[string]func() error{
		"create":     func() error { return os.WriteFile("/checkpoint/other", nil, 0o600) },
		"mkdir":      func() error { return os.Mkdir("/checkpoint/dir", 0o700) },
		"remove":     func() error { return os.Remove(next) },
		"rename":     func() error { return os.Rename(next, "moved") },
		"replace":    func() error { return errors.Join(write("own", "x"), os.Rename("own", next)) },
		"overwrite":  func() error { return os.WriteFile("/inputs/checkpoint/last.json", []byte("{}"), 0o600) },
		"rename dir": func() error { return os.Rename("/checkpoint", "moved") },
	} {
		if try() == nil {
			return fmt.Errorf("%s was possible", what)
		}
	}
	return nil
}

func put(text string) error {
	f, err := os.OpenFile(next, os.O_WRONLY|os.O_TRUNC, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	return errors.Join(err, f.Close())
}
