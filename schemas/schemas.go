// Package schemas embeds the data that Writ's documents are checked against: JSON Schemas, the registry of
// kinds (registry.json), the registry of reasons (reasons.v1.json) and the registries of transitions (transitions/).
package schemas

import "embed"

// FS holds every JSON file of this folder and of transitions/, by path from here.
//
//go:embed *.json transitions/*.json
var FS embed.FS
