package walls

import "slices"

// Visibility returns the Bazel packages that may depend on folder b of go/, as labels
// for a visibility attribute, sorted.
func Visibility(b string) []string {
	// plugins/tools, policies and schemas for their tests (CheckTest). Visibility cannot
	// tell those from the packages; the importwall analyzer can, and nogo runs it under
	// Bazel too.
	labels := []string{
		"//plugins/tools:__subpackages__",
		"//policies:__subpackages__",
		"//schemas:__subpackages__",
		"//testing:__subpackages__",
		"//tools:__subpackages__",
	}
	for _, a := range append(Order(), "cmd", "sdk") {
		if Allowed(a, b) {
			labels = append(labels, "//go/"+a+":__subpackages__")
		}
	}
	if slices.Contains(Vendor(), b) {
		labels = append(labels, "//plugins/adapters:__subpackages__")
	}
	slices.Sort(labels)
	return labels
}
