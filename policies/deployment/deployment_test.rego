package writ.deployment_test

import data.writ.deployment

order := {
	"mode": "observe",
	"executor": "reference-local",
	"tool": {"name": "textstat"},
	"environment": {
		"provider": "wasm",
		"class": "ephemeral_isolated",
		"limits": {"memory_bytes": 268435456, "wall_ms": 60000},
	},
	"outputs": {"paths": [{"path": "report.json"}], "max_bytes": 1048576, "max_count": 4},
}

asking(requests) := {"work_order": order, "deployment": {"name": "local"}, "requested": requests}

changed(change) := {"work_order": object.union(order, change), "deployment": {"name": "local"}, "requested": []}

denied(answer) := {d.rule | some d in answer.deny}

allowed(answer) := {[a.action, a.resource] | some a in answer.allow}

test_an_ordinary_order if {
	answer := deployment.decision with input as asking([{"action": "tool.run", "resource": "tool:textstat"}, {"action": "tool.run", "resource": "tool:**"}])
	answer.deny == set()
	["tool.run", "tool:textstat"] in allowed(answer)
	["input.read", "input:**"] in allowed(answer)
	not ["tool.run", "tool:**"] in allowed(answer)
}

test_nothing_leaves_local if {
	answer := deployment.decision with input as asking([])
	every entry in answer.allow {
		not entry.action in {"network.connect", "model.call", "credential.use", "outbox.publish", "repo.merge"}
	}
}

test_production_publishes_where_it_is_chosen if {
	publish := {"action": "outbox.publish", "resource": "output:report.json", "destination": "folder:releases"}
	raised := object.union(asking([publish]), {"work_order": object.union(order, {"mode": "production"})})
	"deployment.maximum_mode" in denied(deployment.decision) with input as raised
	answer := deployment.decision with input as object.union(raised, {"deployment": {"name": "local-production"}})
	answer.deny == set()
	["outbox.publish", "output:**"] in allowed(answer)
}

test_no_deployment_merges if {
	every name, _ in data.deployment.deployments {
		answer := deployment.decision with input as object.union(asking([]), {"deployment": {"name": name}})
		every entry in answer.allow {
			not entry.action in {"repo.merge", "credential.use"}
		}
	}
}

test_unknown_deployment_denies_everything if {
	answer := deployment.decision with input as object.union(asking([]), {"deployment": {"name": "cloud"}})
	denied(answer) == {"deployment.known"}
	answer.allow == set()
}

test_missing_deployment_denies_everything if {
	answer := deployment.decision with input as object.remove(asking([]), ["deployment"])
	denied(answer) == {"deployment.known"}
	answer.allow == set()
}

test_unlisted_tool if {
	answer := deployment.decision with input as asking([{"action": "tool.run", "resource": "tool:nmap"}])
	denied(answer) == {"deployment.unlisted_tool"}
}

test_no_network if {
	answer := deployment.decision with input as asking([{"action": "network.connect", "resource": "host:h:443"}])
	denied(answer) == {"deployment.no_network"}
}

open := {"open": object.union(data.deployment.deployments.local, {
	"network": ["host:mirror.example.com:443"],
	"models": [{"resource": "model:local/small", "destination": "host:127.0.0.1:8080"}],
})}

test_listed_destinations_and_models if {
	answer := deployment.decision with input as object.union(
		asking([{"action": "network.connect", "resource": "host:mirror.example.com:443"}]),
		{"deployment": {"name": "open"}},
	)
		with data.deployment.deployments as open
	answer.deny == set()
	["network.connect", "host:mirror.example.com:443"] in allowed(answer)
	some entry in answer.allow
	entry.action == "model.call"
	entry.destination == "host:127.0.0.1:8080"
}

test_mode_above_the_deployment if {
	answer := deployment.decision with input as changed({"mode": "production"})
	denied(answer) == {"deployment.maximum_mode"}
	answer.allow == set()
}

test_provider_and_class_belong_together if {
	every environment in [
		{"provider": "docker"},
		{"provider": "trusted-local", "class": "ephemeral_isolated"},
		{"provider": "wasm", "class": "trusted_local"},
	] {
		answer := deployment.decision with input as changed({"environment": environment})
		denied(answer) == {"deployment.listed_provider"}
		answer.allow == set()
	}
}

test_unlisted_executor if {
	answer := deployment.decision with input as changed({"executor": "shell"})
	denied(answer) == {"deployment.listed_executor"}
	answer.allow == set()
}

test_environment_limits if {
	every limit, ceiling in data.deployment.deployments.local.limits.environment {
		above := deployment.decision with input as changed({"environment": {"limits": {limit: ceiling + 1}}})
		denied(above) == {"deployment.environment_limit"}
		above.allow == set()
		at := deployment.decision with input as changed({"environment": {"limits": {limit: ceiling}}})
		at.deny == set()
		count(at.allow) > 0
	}
}

test_missing_environment_limits if {
	without := object.union(object.remove(order, ["environment"]), {"environment": {
		"provider": "wasm",
		"class": "ephemeral_isolated",
		"limits": {"memory_bytes": 0},
	}})
	answer := deployment.decision with input as object.union(object.remove(asking([]), ["work_order"]), {"work_order": without})
	denied(answer) == {"deployment.environment_limit_missing"}
	count(answer.deny) == 2
	answer.allow == set()
}

test_output_limits if {
	every limit, ceiling in data.deployment.deployments.local.limits.outputs {
		above := deployment.decision with input as changed({"outputs": {limit: ceiling + 1}})
		denied(above) == {"deployment.output_limit"}
		above.allow == set()
		none := deployment.decision with input as changed({"outputs": {limit: 0}})
		denied(none) == {"deployment.output_limit_missing"}
		none.allow == set()
	}
}

kept(days, bytes) := changed({
	"environment": {"limits": {"disk_bytes": bytes}},
	"retention": {"keep": true, "days": days},
})

test_retention_limits if {
	ceilings := data.deployment.deployments.local.limits.retention
	at := deployment.decision with input as kept(ceilings.days, ceilings.disk_bytes)
	at.deny == set()
	count(at.allow) > 0
	every above in [[ceilings.days + 1, 1], [1, ceilings.disk_bytes + 1], [0, 1], [1, 0]] {
		answer := deployment.decision with input as kept(above[0], above[1])
		denied(answer) == {"deployment.retention_limit"}
		answer.allow == set()
	}
}

test_a_deployment_without_a_limit_keeps_nothing if {
	odd := {"local": object.union(object.remove(data.deployment.deployments.local, ["limits"]), {"limits": object.remove(
		data.deployment.deployments.local.limits,
		["retention"],
	)})}
	answer := deployment.decision with input as kept(1, 1) with data.deployment.deployments as odd
	denied(answer) == {"deployment.retention_limit"}
	answer.allow == set()
	without := deployment.decision with input as asking([]) with data.deployment.deployments as odd
	without.deny == set()
}

test_an_order_without_these_fields_allows_nothing if {
	every field in ["mode", "executor", "environment", "outputs"] {
		answer := deployment.decision with input as {
			"work_order": object.remove(order, [field]),
			"deployment": {"name": "local"},
			"requested": [],
		}
		answer.allow == set()
		count(answer.deny) > 0
	}
}

test_a_deployment_without_these_fields_allows_nothing if {
	every field in ["maximum_mode", "providers", "executors", "limits"] {
		odd := {"local": object.remove(data.deployment.deployments.local, [field])}
		answer := deployment.decision with input as asking([]) with data.deployment.deployments as odd
		answer.allow == set()
	}
}

test_a_deployment_without_tools_lists_none if {
	odd := {"local": object.remove(data.deployment.deployments.local, ["tools"])}
	answer := deployment.decision with input as asking([{"action": "tool.run", "resource": "tool:textstat"}])
		with data.deployment.deployments as odd
	denied(answer) == {"deployment.unlisted_tool"}
}
