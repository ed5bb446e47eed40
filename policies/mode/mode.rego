# METADATA
# title: Mode policy
# description: >-
#   What a mode permits at most. A mode grants nothing. The floors in data.json beside this file may be stricter than
#   those of the registry of actions and never laxer; a test holds the two together.
package writ.mode

import data.writ.lib

# METADATA
# title: Answer of the mode
# entrypoint: true
decision := {"allow": allow, "deny": deny}

default mode := ""

mode := input.work_order.mode

# METADATA
# title: The mode permits effects of this kind
allow contains object.union(lib.scopes(request), {
	"rule": "mode.within_ceiling",
	"reason": sprintf("mode %s permits effects of this kind", [mode]),
}) if {
	raised_with_evidence
	some request in input.requested
	lib.mode_within(data.mode.floors[request.action], mode)
	action := request.action
	not action in barred
}

# METADATA
# title: The mode exists
deny contains {
	"action": "*",
	"rule": "mode.known",
	"reason": "the work order names no mode that exists",
	"remedy": "ask for observe, shadow, proposal or production",
} if {
	not known
}

# METADATA
# title: No effect above the mode
deny contains object.union(lib.scopes(request), {
	"rule": "mode.above_ceiling",
	"reason": sprintf("%s needs mode %s or above, and the mode is %s", [request.action, floor, mode]),
	"remedy": sprintf("leave it out, or ask for mode %s where role and deployment allow it", [floor]),
}) if {
	some request in input.requested
	known
	floor := data.mode.floors[request.action]
	not lib.mode_within(floor, mode)
	action := request.action
	not action in barred
}

# METADATA
# title: Shadow outputs stay local
# description: >-
#   Shadow work is shaped like production work; what it makes reaches no one outside.
deny contains object.union(lib.scopes(request), {
	"rule": "mode.shadow_stays_local",
	"reason": sprintf("outputs of mode shadow stay in a namespace of their own, and %s would carry them out", [request.action]),
	"remedy": "leave it out; the outputs can be read in the state folder, or ask for mode proposal",
}) if {
	some request in input.requested
	request.action in barred
}

# METADATA
# title: An action has a floor
deny contains object.union(lib.scopes(request), {
	"rule": "mode.action_known",
	"reason": sprintf("the mode policy says nothing about %s", [request.action]),
	"remedy": "leave it out, or have the mode policy's owner give the action a floor",
}) if {
	some request in input.requested
	action := request.action
	not data.mode.floors[action]
}

# METADATA
# title: Production is not raised to without evidence
deny contains {
	"action": "*",
	"rule": "mode.production_needs_evidence",
	"reason": "mode production needs evidence of an earlier run in a lower mode",
	"remedy": "ask for mode shadow or proposal first, and have a person raise the mode by that run (`writ command --help`: mode-raise)",
} if {
	mode == "production"
	not evidence
}

# METADATA
# title: Evidence is of the code that is to run
# description: >-
#   What was approved by the run of one tool and adapter says nothing of others, or of later ones.
deny contains {
	"action": "*",
	"rule": "mode.evidence_of_other_code",
	"reason": "what the mode was raised by ran another tool or another adapter than are pinned now",
	"remedy": "run the order in a lower mode with the tool and adapter of now, and have a person raise the mode by that",
} if {
	mode == "production"
	evidence
	not current
}

known if lib.mode_rank[mode]

raised_with_evidence if mode != "production"

raised_with_evidence if {
	evidence
	current
}

current if input.facts.mode_evidence_current == true

evidence if regex.match(`^sha256:[0-9a-f]{64}$`, input.facts.mode_evidence)

# What would carry shadow outputs out; empty in every other mode.
barred contains action if {
	mode == "shadow"
	some action in data.mode.leaves
}
