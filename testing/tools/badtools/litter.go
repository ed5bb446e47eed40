package main

import "os"

// litter leaves as much as a tool can: files in folders, an offer, and what it holds open
// has no name any more.
func litter([]string) error {
	if err := os.MkdirAll("a/b/c", 0o700); err != nil {
		return err
	}
	for _, name := range []string{"ok", "a/secret", "a/b/c/secret", "gone"} {
		if err := write(name, "left behind\n"); err != nil {
			return err
		}
	}
	if _, err := os.OpenFile("gone", os.O_RDWR, 0); err != nil {
		return err
	}
	if _, err := os.Open("a/b"); err != nil {
		return err
	}
	if err := put("left behind"); err != nil && !os.IsNotExist(err) {
		return err
	}
	return os.Remove("gone")
}
