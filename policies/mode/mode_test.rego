package writ.mode_test

import data.writ.mode

asking(m, requests) := {"work_order": {"mode": m}, "requested": requests, "facts": {}}

denied(answer) := {d.rule | some d in answer.deny}

allowed(answer) := {a.action | some a in answer.allow}

read := {"action": "input.read", "resource": "input:docs/**"}

propose := {"action": "artifact.propose", "resource": "output:report.json"}

connect := {"action": "network.connect", "resource": "host:h:443"}

model := {"action": "model.call", "resource": "model:a/b", "destination": "host:h:1"}

test_reads_are_within_every_known_mode if {
	every m in ["observe", "shadow", "proposal"] {
		answer := mode.decision with input as asking(m, [read, model])
		allowed(answer) == {"input.read", "model.call"}
		answer.deny == set()
	}
}

test_allowance_keeps_the_destination if {
	answer := mode.decision with input as asking("observe", [model])
	some entry in answer.allow
	entry.destination == "host:h:1"
}

test_observe_proposes_nothing if {
	answer := mode.decision with input as asking("observe", [read, propose])
	allowed(answer) == {"input.read"}
	denied(answer) == {"mode.above_ceiling"}
}

test_proposal_proposes if {
	answer := mode.decision with input as asking("proposal", [propose, connect])
	allowed(answer) == {"artifact.propose", "network.connect"}
	answer.deny == set()
}

test_shadow_stays_local if {
	every action in data.mode.leaves {
		answer := mode.decision with input as asking("shadow", [{"action": action, "resource": "x"}])
		allowed(answer) == set()
		denied(answer) == {"mode.shadow_stays_local"}
	}
}

test_unregistered_action_has_no_floor if {
	answer := mode.decision with input as asking("observe", [{"action": "shell.run", "resource": "x"}])
	allowed(answer) == set()
	denied(answer) == {"mode.action_known"}
}

test_unknown_mode_denies_everything if {
	every m in ["root", "", "Production", "production "] {
		answer := mode.decision with input as asking(m, [read])
		allowed(answer) == set()
		denied(answer) == {"mode.known"}
	}
}

test_missing_mode_denies_everything if {
	answer := mode.decision with input as {"work_order": {}, "requested": [read]}
	allowed(answer) == set()
	denied(answer) == {"mode.known"}
}

test_production_needs_evidence if {
	every facts in [{}, {"mode_evidence": ""}, {"mode_evidence": "sha256:abc"}, {"mode_evidence": true}] {
		answer := mode.decision with input as object.union(asking("production", [read]), {"facts": facts})
		allowed(answer) == set()
		denied(answer) == {"mode.production_needs_evidence"}
	}
}

test_production_with_evidence if {
	digest := concat("", ["sha256:", concat("", ["0" | some _ in numbers.range(1, 64)])])
	answer := mode.decision with input as object.union(asking("production", [read, propose]), {"facts": {"mode_evidence": digest, "mode_evidence_current": true}})
	allowed(answer) == {"input.read", "artifact.propose"}
	answer.deny == set()
}

test_evidence_of_other_code_is_none if {
	digest := concat("", ["sha256:", concat("", ["0" | some _ in numbers.range(1, 64)])])
	every facts in [{}, {"mode_evidence_current": false}, {"mode_evidence_current": "true"}] {
		answer := mode.decision with input as object.union(asking("production", [read, propose]), {"facts": object.union(facts, {"mode_evidence": digest})})
		allowed(answer) == set()
		denied(answer) == {"mode.evidence_of_other_code"}
	}
}
