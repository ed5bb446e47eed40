// Package policies embeds the policies that Writ ships: Rego, data and tests, one folder for each layer.
package policies

import "embed"

// FS holds the folders constitution, role, mode, deployment and lib.
//
//go:embed constitution role mode deployment lib
var FS embed.FS
