# METADATA
# title: Constitution
# description: >-
#   What holds in every deployment, for every role and in every mode. It has no data and no exceptions.
package writ.constitution

import data.writ.lib

# METADATA
# title: Answer of the constitution
# entrypoint: true
decision := {"allow": allow, "deny": deny}

# What a work order declares bounds what it can be allowed, whatever it requests.
by_declaration := {
	"input.read", "tool.run", "process.spawn",
	"output.write", "artifact.write", "artifact.propose", "outbox.publish",
}

for_people := {"repo.merge"}

# METADATA
# title: No objection
allow contains object.union(lib.scopes(request), {
	"rule": "constitution.no_objection",
	"reason": "the constitution does not object; the other layers decide",
}) if {
	code_fits_environment
	some request in input.requested
	undeclarable(request.action)
	supervised_if_credential(request.action)
}

# METADATA
# title: Declared inputs may be read
allow contains {
	"action": "input.read",
	"resource": concat("", ["input:", declared.name, "/**"]),
	"rule": "constitution.declared_input",
	"reason": "the work order declares this input",
} if {
	code_fits_environment
	some declared in input.work_order.inputs
}

# METADATA
# title: Declared outputs may be written, kept and offered
allow contains {
	"action": action,
	"resource": concat("", ["output:", declared.path]),
	"rule": "constitution.declared_output",
	"reason": "the work order declares this output",
} if {
	code_fits_environment
	some declared in input.work_order.outputs.paths
	some action in ["output.write", "artifact.write", "artifact.propose"]
}

# METADATA
# title: Declared outputs may be published, to a folder of the deployment
allow contains {
	"action": "outbox.publish",
	"resource": concat("", ["output:", declared.path]),
	"destination": "folder:**",
	"rule": "constitution.published_output",
	"reason": "the work order declares this output, and the deployment names the folders",
} if {
	code_fits_environment
	some declared in input.work_order.outputs.paths
}

# METADATA
# title: The tool that the work order names may run
allow contains {
	"action": action,
	"resource": concat("", ["tool:", input.work_order.tool.name]),
	"rule": "constitution.named_tool",
	"reason": "the work order names this tool, and its digest is pinned",
} if {
	code_fits_environment
	some action in ["tool.run", "process.spawn"]
}

# METADATA
# title: Merging is for people
deny contains object.union(lib.scopes(request), {
	"rule": "constitution.merge_is_for_people",
	"reason": "a merge is decided by a person, in every mode and for every role",
	"remedy": "ask for repo.pull_request or repo.review_packet, and let a person merge",
}) if {
	some request in input.requested
	request.action in for_people
}

# METADATA
# title: Only declared inputs are read
deny contains {
	"action": "input.read",
	"resource": request.resource,
	"rule": "constitution.only_declared_inputs",
	"reason": sprintf("the work order declares no input named %q", [name]),
	"remedy": sprintf("declare it under inputs, or ask for one of: %s", [lib.listed(declared_inputs)]),
} if {
	some request in input.requested
	request.action == "input.read"
	name := split(trim_prefix(request.resource, "input:"), "/")[0]
	name != "**"
	not name in declared_inputs
}

declared_inputs contains declared.name if some declared in input.work_order.inputs

# METADATA
# title: Only declared outputs are written
deny contains {
	"action": request.action,
	"resource": request.resource,
	"rule": "constitution.only_declared_outputs",
	"reason": sprintf("the work order declares no output %q", [path]),
	"remedy": sprintf("declare it under outputs.paths, or ask for one of: %s", [lib.listed(declared_outputs)]),
} if {
	some request in input.requested
	startswith(request.resource, "output:")
	path := trim_prefix(request.resource, "output:")
	not endswith(path, "**")
	not path in declared_outputs
}

declared_outputs contains declared.path if some declared in input.work_order.outputs.paths

# METADATA
# title: Only the named tool runs
deny contains {
	"action": request.action,
	"resource": request.resource,
	"rule": "constitution.only_the_named_tool",
	"reason": sprintf("the work order names the tool %q and no other", [input.work_order.tool.name]),
	"remedy": "name the tool under tool, or write a work order of its own for it",
} if {
	some request in input.requested
	request.action in {"tool.run", "process.spawn"}
	resource := request.resource
	not named(resource)
}

named("tool:**")

named(resource) if resource == concat("", ["tool:", input.work_order.tool.name])

# METADATA
# title: Code that nobody reviewed needs isolation
# description: >-
#   Candidate, community, self-modifying and hidden-evaluation code runs isolated. Only the reviewed allowlist makes
#   code reviewed, so a claim in the work order changes nothing.
deny contains {
	"action": "*",
	"rule": "constitution.code_needs_isolation",
	"reason": sprintf("code of class %s may not run in an environment of class trusted_local", [lib.code_class]),
	"remedy": "choose a provider of class ephemeral_isolated, such as wasm; or have the tool's digest reviewed and put on the allowlist",
} if {
	environment_class == "trusted_local"
	lib.code_class != "reviewed"
}

# METADATA
# title: The class of the environment is known
deny contains {
	"action": "*",
	"rule": "constitution.environment_class_known",
	"reason": "the environment is neither of class ephemeral_isolated nor of class trusted_local",
	"remedy": "choose a registered environment provider, such as wasm",
} if {
	not environment_class in {"ephemeral_isolated", "trusted_local"}
}

# METADATA
# title: Live credentials need supervision
deny contains object.union(lib.scopes(request), {
	"rule": "constitution.credentials_are_supervised",
	"reason": "a live credential serves one attempt that an authenticated person supervises",
	"remedy": "do the work without the credential, or have an operator supervise the attempt",
}) if {
	some request in input.requested
	request.action == "credential.use"
	not supervised
}

default environment_class := ""

environment_class := input.work_order.environment.class

code_fits_environment if environment_class == "ephemeral_isolated"

code_fits_environment if {
	environment_class == "trusted_local"
	lib.code_class == "reviewed"
}

undeclarable(action) if {
	not action in by_declaration
	not action in for_people
}

supervised if input.facts.supervised == true

supervised_if_credential(action) if action != "credential.use"

supervised_if_credential("credential.use") if supervised
