// Package policy asks the Rego layers what they allow. Each layer is compiled by itself, with the shared lib and
// its own data and nothing else, from the language that is left when every built-in function is taken away that
// is not deterministic, reaches outside or makes anything but integers. Whatever goes wrong in a layer (an error,
// a deadline, an answer of another shape) makes that layer allow nothing.
//
// The package decides nothing across layers: it hands capability.Answers to capability.Registry.Resolve.
package policy
