package main

import (
	"fmt"
	"os"
	"strings"
	"time"
)

func loop([]string) error {
	n := 0
	for {
		n++
		if n < 0 {
			fmt.Fprintln(os.Stderr, "cannot happen soon")
		}
	}
}

// sleep sleeps for a year. With a clock that does not wait it ends at once.
func sleep([]string) error {
	time.Sleep(365 * 24 * time.Hour)
	return write("ok", "slept\n")
}

func memory([]string) error {
	var kept [][]byte
	for {
		b := make([]byte, 8<<20)
		for i := range b {
			b[i] = byte(len(kept))
		}
		kept = append(kept, b)
	}
}

func printForever([]string) error {
	line := strings.Repeat("flood ", 100)
	for {
		// Errors do not stop a flood.
		fmt.Println(line)
	}
}

// huge tries to write 10 GB and does not look at errors.
func huge([]string) error {
	f, err := os.Create("huge.bin")
	if err != nil {
		return err
	}
	block := make([]byte, 1<<20)
	for i := 0; i < 10*1024; i++ {
		if _, err := f.Write(block); err != nil {
			break
		}
	}
	return f.Close()
}

// sparse asks for one byte far away.
func sparse([]string) error {
	f, err := os.Create("sparse.bin")
	if err != nil {
		return err
	}
	if _, err := f.WriteAt([]byte{1}, 1<<40); err != nil {
		return fmt.Errorf("write far away: %w", err)
	}
	return f.Close()
}

// hoard keeps deleted files open: their bytes must still count.
func hoard([]string) error {
	var kept []*os.File
	block := make([]byte, 1<<20)
	for i := 0; i < 60; i++ {
		f, err := os.Create("hoard.bin")
		if err != nil {
			return err
		}
		kept = append(kept, f)
		for j := 0; j < 4; j++ {
			if _, err := f.Write(block); err != nil {
				return fmt.Errorf("file %d: %w", i, err)
			}
		}
		if err := os.Remove("hoard.bin"); err != nil {
			return err
		}
	}
	return fmt.Errorf("kept %d deleted files", len(kept))
}

func files([]string) error {
	for i := 0; i < 1_000_000; i++ {
		if err := write(fmt.Sprintf("f%07d", i), ""); err != nil {
			return nil // as if nothing had happened
		}
	}
	return nil
}

func depth([]string) error { return os.MkdirAll(strings.Repeat("d/", 1000), 0o700) }

func name([]string) error { return write(strings.Repeat("n", 1000), "") }

// names writes files under names that look like something else, and fails.
func names([]string) error {
	for _, name := range []string{"a\nb", "\x1b[2Jc", "\u202etxt.exe", `d\e`, "e\u0301", strings.Repeat("n", 300), "manifest.json", ".writ-f", "odd/1", "g/h/i"} {
		if at := strings.LastIndexByte(name, '/'); at >= 0 {
			if err := os.MkdirAll(name[:at], 0o700); err != nil {
				return err
			}
		}
		if err := write(name, "this is "+name); err != nil {
			return err
		}
	}
	if err := os.MkdirAll("nothing/here", 0o700); err != nil {
		return err
	}
	os.Exit(3)
	return nil
}

func open([]string) error {
	var kept []*os.File
	for i := 0; i < 1_000_000; i++ {
		f, err := os.Create("one")
		if err != nil {
			return fmt.Errorf("after %d open files: %w", len(kept), err)
		}
		kept = append(kept, f)
	}
	return nil
}
