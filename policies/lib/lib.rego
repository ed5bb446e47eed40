# METADATA
# title: Shared words
# description: What several layers need to read out of the input. Nothing here decides.
package writ.lib

# METADATA
# title: Scopes of a request, as the beginning of an answer's entry
scopes(request) := {
	"action": request.action,
	"resource": request.resource,
	"destination": request.destination,
} if {
	request.destination
}

scopes(request) := {
	"action": request.action,
	"resource": request.resource,
} if {
	not request.destination
}

# METADATA
# title: How far the code is trusted
# description: >-
#   A work order only claims. The reviewed allowlist makes code reviewed, and a class that is missing or unknown
#   counts as candidate.
code_class := "reviewed" if {
	input.work_order.code_class == "reviewed"
	input.facts.tool_reviewed == true
} else := class if {
	class := input.work_order.code_class
	class in {"candidate", "community", "self_modifying", "hidden_evaluation"}
} else := "candidate"

# METADATA
# title: Rank of each mode, from the lowest to the highest
mode_rank := {"observe": 1, "shadow": 2, "proposal": 3, "production": 4}

# METADATA
# title: Whether a mode is the ceiling or lies below it
# description: What is no mode lies below nothing, and nothing lies below it.
mode_within(mode, ceiling) if mode_rank[mode] <= mode_rank[ceiling]

# METADATA
# title: A sorted, readable list of names
listed(names) := concat(", ", sort(names)) if count(names) > 0

listed(names) := "none" if count(names) == 0
