// Command badtools is a tool that misbehaves in the way that its first argument names. Tests run it to see that
// every way ends as it should.
package main

import (
	"fmt"
	"os"
	"sort"
	"strings"
)

// way is one kind of misbehaviour. An error makes the tool print it and end with status 1.
type way func(args []string) error

func ways() map[string]way {
	return map[string]way{
		"trap":       trap,
		"panic":      func([]string) error { panic("as asked") },
		"exit-3":     func([]string) error { os.Exit(3); return nil },
		"loop":       loop,
		"sleep":      sleep,
		"memory":     memory,
		"print":      printForever,
		"huge":       huge,
		"sparse":     sparse,
		"hoard":      hoard,
		"files":      files,
		"depth":      depth,
		"name":       name,
		"names":      names,
		"open":       open,
		"undeclared": func([]string) error { return write("surprise.txt", "nobody declared me\n") },
		"nothing":    func([]string) error { return nil },
		"malformed":  func([]string) error { return write("report.json", "{\"files\": ") },
		"symlink":    symlink,
		"hardlink":   hardlink,
		"outside":    outside,
		"inputs":     inputs,
		"litter":     litter,
		"network":    network,
		"observe":    observe,
		"offer":      offer,
		"offer-loop": offerThenLoop,
		"offer-much": offerTooMuch,
		"offer-else": offerElsewhere,
	}
}

func main() {
	args := os.Args[1:]
	if len(args) == 0 {
		args = []string{""}
	}
	run, ok := ways()[args[0]]
	if !ok {
		var names []string
		for n := range ways() {
			names = append(names, n)
		}
		sort.Strings(names)
		fmt.Fprintf(os.Stderr, "badtools: say how: %s\n", strings.Join(names, " "))
		os.Exit(2)
	}
	if err := run(args[1:]); err != nil {
		fmt.Fprintf(os.Stderr, "badtools: %v\n", err)
		os.Exit(1)
	}
}

func write(name, text string) error { return os.WriteFile(name, []byte(text), 0o600) }
