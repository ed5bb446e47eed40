// Package walls says which package may import which. It is the one place that knows:
// the importwall analyzer asks it, and `go run ./tools/walls` writes Bazel's visibility
// from it.
//
// Under go/ there is an order, and a package imports only what stands above it. That
// keeps the pure core free of the machine, and the vendor's interface free of both.
package walls

import (
	"fmt"
	"slices"
	"strings"
)

// Module is the path of this Go module.
const Module = "github.com/writ-runtime/writ"

// Order returns the folders of go/ in the order of import. A new folder is entered here
// first, at the highest place where what it imports stands above it.
//
// go/cmd may import all of them, and nothing imports it; go/sdk has a list of its own.
func Order() []string {
	return []string{
		"reason",
		"canonical",
		"operation",
		"schema",
		"lifecycle",
		"capability",
		"workorder",
		"protocol",
		"api", // generated; stands with protocol
		"attestation",
		"attemptbundle",
		"kernel",
		"killpoint", // empty in what ships
		"journal",
		"projection",
		"pin",
		"confine",
		"beneath",
		"artifact",
		"retention",
		"policy",
		"broker",
		"ledger",
		"telemetry",
		"environment",
		"executor",
		"modelgateway",
		"adapterhost",
		"outbox",
		"evidence",
		"ingress", // above those that take its Accepted as proof that a delivery was recorded
		"admission",
		"supervisor",
		"dispatcher",
		"host", // the wiring of all of them
	}
}

// SDK returns what go/sdk may import: the types that a vendor sees, and no more.
func SDK() []string {
	return []string{"reason", "canonical", "operation", "workorder", "protocol", "api"}
}

// Vendor returns what an adapter under plugins/adapters may import: the sdk, and what the
// sdk's interface is made of.
func Vendor() []string {
	return []string{"sdk", "reason", "canonical", "operation", "workorder", "protocol"}
}

// Pure returns the folders of go/ that know no clock, no randomness and no machine.
func Pure() []string {
	return []string{
		"reason", "canonical", "operation", "schema", "lifecycle", "capability", "workorder",
		"protocol", "attestation", "attemptbundle", "kernel",
	}
}

// Unit returns the folder of go/ that a package of this module belongs to, for example
// journal for .../go/journal/sqlite; "" for a package elsewhere.
func Unit(importPath string) string {
	rest, ok := strings.CutPrefix(importPath, Module+"/go/")
	if !ok {
		return ""
	}
	unit, _, _ := strings.Cut(rest, "/")
	return unit
}

// Check returns why package from may not import package to; nil when it may. Both are
// import paths; a package of another module may always be imported.
func Check(from, to string) error {
	from, ok := local(from)
	if !ok {
		return nil
	}
	to, ok = local(to)
	if !ok || to == from || strings.HasPrefix(to, from+"/") {
		return nil
	}
	switch top, _, _ := strings.Cut(from, "/"); top {
	case "go":
		return checkGo(from, to)
	case "plugins":
		return checkPlugin(from, to)
	case "schemas", "policies":
		if strings.HasPrefix(to, top+"/") || to == top {
			return nil
		}
		return fmt.Errorf("%s is data: it imports nothing of ours, not %s", from, to)
	}
	return nil // testing/ and tools/ do not ship and may import everything
}

// CheckTest is Check for an import of a test file. To Bazel a test is part of its package,
// so the order holds; beyond Check, a test may import what testing/ and tools/ offer, and
// the tests of schemas, policies and plugins/tools may ask the code that reads or runs them.
func CheckTest(from, to string) error {
	for _, top := range []string{"testing", "tools"} {
		if strings.HasPrefix(to, Module+"/"+top+"/") {
			return nil
		}
	}
	if p, ok := local(from); ok && (isData(p) || strings.HasPrefix(p, "plugins/tools/")) {
		return nil
	}
	return Check(from, to)
}

// isData reports whether p is schemas or policies, or below.
func isData(p string) bool {
	top, _, _ := strings.Cut(p, "/")
	return top == "schemas" || top == "policies"
}

func local(importPath string) (string, bool) {
	return strings.CutPrefix(importPath, Module+"/")
}

func checkGo(from, to string) error {
	a, b := folder(from), folder(to)
	switch {
	case isData(to):
		return nil // data that anyone may embed
	case b == "":
		return fmt.Errorf("%s may not import %s: what ships does not import plugins, tests or tools", from, to)
	case a == b:
		return nil
	case Allowed(a, b):
		return nil
	case a == "sdk":
		return fmt.Errorf("go/sdk may not import go/%s: only %s", b, strings.Join(SDK(), ", "))
	case a != "cmd" && !slices.Contains(Order(), a):
		return fmt.Errorf("go/%s has no place in the order of import: enter it in tools/lint/walls", a)
	}
	return fmt.Errorf("go/%s may not import go/%s: it does not stand above it in the order of import (tools/lint/walls)", a, b)
}

// folder returns X of go/X/...; "" elsewhere.
func folder(p string) string { return Unit(Module + "/" + p) }

// Allowed reports whether folder a of go/ may import folder b of go/.
func Allowed(a, b string) bool {
	order := Order()
	above := slices.Index(order, b)
	switch a {
	case b:
		return true
	case "cmd":
		return above >= 0 || b == "sdk"
	case "sdk":
		return slices.Contains(SDK(), b)
	}
	return above >= 0 && above < slices.Index(order, a)
}

func checkPlugin(from, to string) error {
	// plugins/adapters/NAME is one program; so is plugins/tools/NAME.
	parts := strings.SplitN(from, "/", 4)
	if len(parts) >= 3 {
		own := strings.Join(parts[:3], "/")
		if to == own || strings.HasPrefix(to, own+"/") {
			return nil
		}
	}
	if strings.HasPrefix(from, "plugins/adapters/") {
		if slices.Contains(Vendor(), folder(to)) {
			return nil
		}
		return fmt.Errorf("%s may not import %s: an adapter imports its own code, and of go/ only %s", from, to, strings.Join(Vendor(), ", "))
	}
	return fmt.Errorf("%s may not import %s: a tool stands alone, as if others had written it", from, to)
}
