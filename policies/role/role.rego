# METADATA
# title: Role ceilings
# description: >-
#   What a role may do at most, from data.json beside this file. A role grants nothing: a work order must ask, and
#   every other layer must agree.
package writ.role

import data.writ.lib

# METADATA
# title: Answer of the role
# entrypoint: true
decision := {"allow": allow, "deny": deny}

default name := ""

name := input.work_order.role

default mode := ""

mode := input.work_order.mode

role := data.role.roles[name]

listed_actions contains listed.action if some listed in role.ceiling

# METADATA
# title: What the role's ceiling lists
allow contains object.union(listed, {
	"rule": "role.ceiling",
	"reason": sprintf("the ceiling of role %s lists it", [name]),
}) if {
	lib.mode_within(mode, role.maximum_mode)
	some listed in role.ceiling
}

# METADATA
# title: The role exists
deny contains {
	"action": "*",
	"rule": "role.known",
	"reason": "the work order names no role that exists",
	"remedy": sprintf("name one of the roles: %s", [lib.listed(object.keys(data.role.roles))]),
} if {
	not role
}

# METADATA
# title: The mode lies below the role's own ceiling
deny contains {
	"action": "*",
	"rule": "role.maximum_mode",
	"reason": sprintf("role %s works in mode %s at most, and the work order asks for %s", [name, role.maximum_mode, mode]),
	"remedy": sprintf("ask for mode %s, or name a role that may: %s", [role.maximum_mode, lib.listed(in_mode)]),
} if {
	role
	maximum_mode := role.maximum_mode
	not lib.mode_within(mode, maximum_mode)
}

# METADATA
# title: Nothing outside the role's ceiling
deny contains object.union(lib.scopes(request), {
	"rule": "role.unlisted",
	"reason": sprintf("the ceiling of role %s does not list %s", [name, request.action]),
	"remedy": instead(able),
}) if {
	some request in input.requested
	role
	action := request.action
	not action in listed_actions
	able := {other | some other, r in data.role.roles; some c in r.ceiling; c.action == request.action}
}

instead(able) := "leave it out; no role may do it" if count(able) == 0

instead(able) := sprintf("leave it out, or name a role that may: %s", [lib.listed(able)]) if count(able) > 0

in_mode contains other if {
	some other, r in data.role.roles
	lib.mode_within(mode, r.maximum_mode)
}
