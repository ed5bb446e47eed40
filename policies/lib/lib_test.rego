package writ.lib_test

import data.writ.lib

test_scopes_keep_a_destination if {
	request := {"action": "model.call", "resource": "model:a/b", "destination": "host:h:1", "required": true}
	lib.scopes(request) == {"action": "model.call", "resource": "model:a/b", "destination": "host:h:1"}
}

test_scopes_without_destination if {
	lib.scopes({"action": "tool.run", "resource": "tool:t", "required": true}) == {"action": "tool.run", "resource": "tool:t"}
}

test_reviewed_needs_the_allowlist if {
	lib.code_class == "reviewed" with input as {"work_order": {"code_class": "reviewed"}, "facts": {"tool_reviewed": true}}
	lib.code_class == "candidate" with input as {"work_order": {"code_class": "reviewed"}, "facts": {"tool_reviewed": false}}
	lib.code_class == "candidate" with input as {"work_order": {"code_class": "reviewed"}}
}

test_other_classes_stand if {
	every class in ["candidate", "community", "self_modifying", "hidden_evaluation"] {
		lib.code_class == class with input as {"work_order": {"code_class": class}, "facts": {"tool_reviewed": true}}
	}
}

test_unknown_class_is_candidate if {
	lib.code_class == "candidate" with input as {"work_order": {"code_class": "Reviewed"}, "facts": {"tool_reviewed": true}}
	lib.code_class == "candidate" with input as {"work_order": {}, "facts": {"tool_reviewed": true}}
}

test_mode_within if {
	lib.mode_within("observe", "shadow")
	lib.mode_within("shadow", "shadow")
	not lib.mode_within("production", "shadow")
}

test_what_is_no_mode_is_within_nothing if {
	not lib.mode_within("root", "production")
	not lib.mode_within("observe", "root")
	not lib.mode_within("root", "root")
}

test_listed if {
	lib.listed({"b", "a"}) == "a, b"
	lib.listed(set()) == "none"
}
