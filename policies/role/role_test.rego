package writ.role_test

import data.writ.role

asking(name, mode, requests) := {"work_order": {"role": name, "mode": mode}, "requested": requests}

denied(answer) := {d.rule | some d in answer.deny}

test_ceiling_is_allowed_with_its_own_scopes if {
	answer := role.decision with input as asking("analyst", "observe", [])
	answer.deny == set()
	some entry in answer.allow
	entry.action == "model.call"
	entry.destination == "host:**"
	entry.rule == "role.ceiling"
	count(answer.allow) == count(data.role.roles.analyst.ceiling)
}

test_unlisted_action_is_denied_and_names_who_may if {
	answer := role.decision with input as asking("analyst", "observe", [{"action": "network.connect", "resource": "host:h:443"}])
	denied(answer) == {"role.unlisted"}
	some entry in answer.deny
	contains(entry.remedy, "operator")
	not contains(entry.remedy, "analyst")
}

test_an_action_no_role_has_says_none if {
	answer := role.decision with input as asking("operator", "production", [{"action": "repo.merge", "resource": "repo:a/b", "destination": "branch:main"}])
	denied(answer) == {"role.unlisted"}
	some entry in answer.deny
	entry.remedy == "leave it out; no role may do it"
	entry.destination == "branch:main"
}

test_listed_action_is_not_denied if {
	answer := role.decision with input as asking("transformer", "shadow", [{"action": "tool.run", "resource": "tool:t"}])
	answer.deny == set()
}

test_unknown_role_denies_everything if {
	answer := role.decision with input as asking("root", "observe", [{"action": "tool.run", "resource": "tool:t"}])
	answer.allow == set()
	denied(answer) == {"role.known"}
	some entry in answer.deny
	entry.action == "*"
}

test_missing_role_denies_everything if {
	answer := role.decision with input as {"work_order": {"mode": "observe"}, "requested": []}
	denied(answer) == {"role.known"}
}

test_mode_above_the_role_denies_everything if {
	answer := role.decision with input as asking("analyst", "proposal", [])
	denied(answer) == {"role.maximum_mode"}
	some entry in answer.deny
	contains(entry.remedy, "operator, reporter, reviewer, transformer")
}

test_unknown_mode_denies_everything if {
	answer := role.decision with input as asking("operator", "root", [])
	denied(answer) == {"role.maximum_mode"}
}

test_a_role_without_a_maximum_mode_allows_nothing if {
	answer := role.decision with input as asking("odd", "observe", [])
		with data.role.roles as {"odd": {"ceiling": [{"action": "tool.run", "resource": "tool:**"}]}}
	answer.allow == set()
}

test_a_missing_mode_allows_nothing if {
	answer := role.decision with input as {"work_order": {"role": "analyst"}, "requested": []}
	answer.allow == set()
	denied(answer) == {"role.maximum_mode"}
}

test_no_role_lists_a_merge if {
	every _, r in data.role.roles {
		every entry in r.ceiling {
			entry.action != "repo.merge"
		}
	}
}
