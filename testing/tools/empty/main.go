// Command empty is a tool that does nearly nothing: it writes one small file. Benchmarks run it.
package main

import "os"

func main() {
	if err := os.WriteFile("ok", []byte("ok\n"), 0o600); err != nil {
		os.Exit(1)
	}
}
