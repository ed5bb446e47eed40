package writ.constitution_test

import data.writ.constitution

order := {
	"tool": {"name": "textstat"},
	"code_class": "candidate",
	"environment": {"provider": "wasm", "class": "ephemeral_isolated"},
	"inputs": [{"name": "docs"}],
	"outputs": {"paths": [{"path": "report.json"}]},
}

asking(requests) := {"work_order": order, "requested": requests, "facts": {"tool_reviewed": false}}

denied(answer) := {d.rule | some d in answer.deny}

allowed(answer) := {[a.action, a.resource] | some a in answer.allow}

test_declared_things_are_allowed if {
	answer := constitution.decision with input as asking([])
	allowed(answer) == {
		["input.read", "input:docs/**"],
		["output.write", "output:report.json"],
		["artifact.write", "output:report.json"],
		["artifact.propose", "output:report.json"],
		["outbox.publish", "output:report.json"],
		["tool.run", "tool:textstat"],
		["process.spawn", "tool:textstat"],
	}
	answer.deny == set()
}

test_other_actions_meet_no_objection if {
	answer := constitution.decision with input as asking([
		{"action": "result.report", "resource": "none"},
		{"action": "model.call", "resource": "model:a/b", "destination": "host:h:1"},
	])
	["result.report", "none"] in allowed(answer)
	some entry in answer.allow
	entry.destination == "host:h:1"
}

test_merge_is_denied if {
	answer := constitution.decision with input as asking([{"action": "repo.merge", "resource": "repo:a/b", "destination": "branch:main"}])
	denied(answer) == {"constitution.merge_is_for_people"}
	not ["repo.merge", "repo:a/b"] in allowed(answer)
	some entry in answer.deny
	entry.destination == "branch:main"
}

test_undeclared_input_is_denied if {
	answer := constitution.decision with input as asking([{"action": "input.read", "resource": "input:secrets/key"}])
	denied(answer) == {"constitution.only_declared_inputs"}
}

test_declared_input_and_everything_are_not_denied if {
	answer := constitution.decision with input as asking([
		{"action": "input.read", "resource": "input:docs/a.txt"},
		{"action": "input.read", "resource": "input:docs"},
		{"action": "input.read", "resource": "input:**"},
	])
	answer.deny == set()
}

test_other_tool_is_denied if {
	answer := constitution.decision with input as asking([{"action": "tool.run", "resource": "tool:other"}])
	denied(answer) == {"constitution.only_the_named_tool"}
}

test_named_tool_is_not_denied if {
	answer := constitution.decision with input as asking([
		{"action": "tool.run", "resource": "tool:textstat"},
		{"action": "tool.run", "resource": "tool:**"},
	])
	answer.deny == set()
}

local(class, reviewed) := {
	"work_order": object.union(order, {"code_class": class, "environment": {"provider": "trusted-local", "class": "trusted_local"}}),
	"requested": [],
	"facts": {"tool_reviewed": reviewed},
}

test_unreviewed_code_needs_isolation if {
	every class in ["candidate", "community", "self_modifying", "hidden_evaluation", "Reviewed", ""] {
		answer := constitution.decision with input as local(class, true)
		denied(answer) == {"constitution.code_needs_isolation"}
		answer.allow == set()
	}
}

test_a_claim_alone_makes_nothing_reviewed if {
	answer := constitution.decision with input as local("reviewed", false)
	denied(answer) == {"constitution.code_needs_isolation"}
}

test_reviewed_code_may_run_locally if {
	answer := constitution.decision with input as local("reviewed", true)
	answer.deny == set()
	["tool.run", "tool:textstat"] in allowed(answer)
}

elsewhere(environment) := {
	"work_order": object.union(object.remove(order, ["environment"]), {"environment": environment}),
	"requested": [{"action": "result.report", "resource": "none"}],
	"facts": {},
}

test_unknown_environment_class_denies_everything if {
	every environment in [{}, {"class": "container"}, {"class": ""}, {"class": null}] {
		answer := constitution.decision with input as elsewhere(environment)
		denied(answer) == {"constitution.environment_class_known"}
		answer.allow == set()
	}
}

test_undeclared_output_is_denied if {
	answer := constitution.decision with input as asking([{"action": "output.write", "resource": "output:other.json"}])
	denied(answer) == {"constitution.only_declared_outputs"}
}

test_declared_output_and_everything_are_not_denied if {
	answer := constitution.decision with input as asking([
		{"action": "output.write", "resource": "output:report.json"},
		{"action": "artifact.write", "resource": "output:**"},
	])
	answer.deny == set()
}

credential := {"action": "credential.use", "resource": "credential:c", "destination": "host:h:1"}

test_credentials_need_supervision if {
	answer := constitution.decision with input as asking([credential])
	denied(answer) == {"constitution.credentials_are_supervised"}
	not ["credential.use", "credential:c"] in allowed(answer)
}

test_supervised_credentials_meet_no_objection if {
	answer := constitution.decision with input as object.union(asking([credential]), {"facts": {"supervised": true}})
	answer.deny == set()
	["credential.use", "credential:c"] in allowed(answer)
}
