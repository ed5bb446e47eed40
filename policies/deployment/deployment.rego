# METADATA
# title: Deployment policy
# description: >-
#   What this deployment offers, from data.json beside this file: providers, executors, tools, destinations, models,
#   and ceilings of resources. What it does not list does not exist here.
package writ.deployment

import data.writ.lib

# METADATA
# title: Answer of the deployment
# entrypoint: true
decision := {"allow": allow, "deny": deny}

default name := ""

name := input.deployment.name

deployment := data.deployment.deployments[name]

environment := input.work_order.environment

outputs := input.work_order.outputs

retention := input.work_order.retention

# Nothing is allowed unless the work fits as a whole. The denials below say what does not.
fits if {
	mode_listed
	provider_listed
	executor_listed
	every limit, _ in deployment.limits.environment {
		environment_bounded(limit)
	}
	every limit in deployment.limits.required {
		environment.limits[limit] > 0
	}
	every limit, ceiling in deployment.limits.outputs {
		outputs[limit] > 0
		outputs[limit] <= ceiling
	}
	retention_fits
}

mode_listed if lib.mode_within(input.work_order.mode, deployment.maximum_mode)

provider_listed if deployment.providers[environment.provider] == environment.class

executor_listed if input.work_order.executor in deployment.executors

environment_bounded(limit) if environment.limits[limit] <= deployment.limits.environment[limit]

# A limit that the work does not name is the deployment's own.
environment_bounded(limit) if not environment.limits[limit]

environment_limited(limit) if environment.limits[limit] > 0

output_limited(limit) if outputs[limit] > 0

# An order that does not say so has nothing kept.
retention_fits if not retention

# What is kept is bounded in time and, by what the environment may hold, in bytes.
retention_fits if {
	retention.days > 0
	retention.days <= deployment.limits.retention.days
	environment.limits.disk_bytes > 0
	environment.limits.disk_bytes <= deployment.limits.retention.disk_bytes
}

default listed_tools := []

listed_tools := deployment.tools

# METADATA
# title: Work on the attempt's own inputs and outputs
allow contains object.union(listed, {
	"rule": "deployment.own_work",
	"reason": sprintf("deployment %s lets every attempt work on its own inputs and outputs", [name]),
}) if {
	fits
	some listed in deployment.own_work
}

# METADATA
# title: Listed tools run
allow contains {
	"action": "tool.run",
	"resource": concat("", ["tool:", tool]),
	"rule": "deployment.listed_tool",
	"reason": sprintf("deployment %s lists the tool", [name]),
} if {
	fits
	some tool in deployment.tools
}

# METADATA
# title: Listed destinations are reached
allow contains {
	"action": "network.connect",
	"resource": destination,
	"rule": "deployment.listed_destination",
	"reason": sprintf("deployment %s lists the destination", [name]),
} if {
	fits
	some destination in deployment.network
}

# METADATA
# title: Listed models are called
allow contains {
	"action": "model.call",
	"resource": model.resource,
	"destination": model.destination,
	"rule": "deployment.listed_model",
	"reason": sprintf("deployment %s lists the model", [name]),
} if {
	fits
	some model in deployment.models
}

# METADATA
# title: Candidates are put before people
# description: >-
#   Which folders and repositories there are, the owner of the state folder lists in its outbox.yaml; what is not
#   listed there cannot be reached.
allow contains object.union(listed, {
	"rule": "deployment.listed_outbox",
	"reason": sprintf("deployment %s lets accepted results become candidates for review", [name]),
}) if {
	fits
	some listed in deployment.outbox
}

# METADATA
# title: The deployment exists
deny contains {
	"action": "*",
	"rule": "deployment.known",
	"reason": "no deployment of that name is configured",
	"remedy": sprintf("use one of the deployments: %s", [lib.listed(object.keys(data.deployment.deployments))]),
} if {
	not deployment
}

# METADATA
# title: The mode lies below the deployment's ceiling
deny contains {
	"action": "*",
	"rule": "deployment.maximum_mode",
	"reason": sprintf("deployment %s runs work in mode %s at most", [name, deployment.maximum_mode]),
	"remedy": sprintf("ask for mode %s, or have the deployment's owner raise maximum_mode with evidence", [deployment.maximum_mode]),
} if {
	deployment
	not mode_listed
}

# METADATA
# title: The environment provider is listed
deny contains {
	"action": "*",
	"rule": "deployment.listed_provider",
	"reason": sprintf("deployment %s does not offer this environment provider with this class", [name]),
	"remedy": sprintf("choose one of the providers: %s", [lib.listed(object.keys(deployment.providers))]),
} if {
	deployment
	not provider_listed
}

# METADATA
# title: The executor is listed
deny contains {
	"action": "*",
	"rule": "deployment.listed_executor",
	"reason": sprintf("deployment %s does not offer this executor", [name]),
	"remedy": sprintf("choose one of the executors: %s", [lib.listed(deployment.executors)]),
} if {
	deployment
	not executor_listed
}

# METADATA
# title: No tool that the deployment does not list
deny contains {
	"action": "tool.run",
	"resource": request.resource,
	"rule": "deployment.unlisted_tool",
	"reason": sprintf("deployment %s does not list the tool", [name]),
	"remedy": sprintf("use one of the tools: %s", [lib.listed(listed_tools)]),
} if {
	some request in input.requested
	request.action == "tool.run"
	resource := request.resource
	not tool_listed(resource)
}

tool_listed("tool:**")

tool_listed(resource) if trim_prefix(resource, "tool:") in listed_tools

# METADATA
# title: No network unless a destination is listed
deny contains {
	"action": "network.connect",
	"resource": request.resource,
	"rule": "deployment.no_network",
	"reason": sprintf("deployment %s lists no destination outside", [name]),
	"remedy": "give the work its data as inputs, or have the deployment's owner list the destination",
} if {
	some request in input.requested
	request.action == "network.connect"
	not destination_listed
}

destination_listed if count(deployment.network) > 0

# METADATA
# title: The environment's limits stay below the deployment's
deny contains {
	"action": "*",
	"rule": "deployment.environment_limit",
	"reason": sprintf("environment.limits.%s is %d, and deployment %s allows %d", [limit, environment.limits[limit], name, ceiling]),
	"remedy": sprintf("set environment.limits.%s to %d or less", [limit, ceiling]),
} if {
	some limit, ceiling in deployment.limits.environment
	environment.limits[limit] > ceiling
}

# METADATA
# title: Memory and wall time are limited
deny contains {
	"action": "*",
	"rule": "deployment.environment_limit_missing",
	"reason": sprintf("the environment has no limit %s above zero", [limit]),
	"remedy": sprintf("set environment.limits.%s to a number from 1 to %d", [limit, deployment.limits.environment[limit]]),
} if {
	some limit in deployment.limits.required
	not environment_limited(limit)
}

# METADATA
# title: Outputs stay below the deployment's limits
deny contains {
	"action": "*",
	"rule": "deployment.output_limit",
	"reason": sprintf("outputs.%s is %d, and deployment %s allows %d", [limit, outputs[limit], name, ceiling]),
	"remedy": sprintf("set outputs.%s to %d or less", [limit, ceiling]),
} if {
	some limit, ceiling in deployment.limits.outputs
	outputs[limit] > ceiling
}

# METADATA
# title: What is kept of a workspace is bounded
deny contains {
	"action": "*",
	"rule": "deployment.retention_limit",
	"reason": sprintf("the workspace is to be kept for %d days and may hold %d bytes, and deployment %s keeps at most %d bytes for %d days", [
		object.get(retention, "days", 0),
		object.get(environment, ["limits", "disk_bytes"], 0),
		name,
		object.get(deployment, ["limits", "retention", "disk_bytes"], 0),
		object.get(deployment, ["limits", "retention", "days"], 0),
	]),
	"remedy": "lower retention.days or environment.limits.disk_bytes, or keep nothing",
} if {
	deployment
	retention
	not retention_fits
}

# METADATA
# title: Outputs are limited
deny contains {
	"action": "*",
	"rule": "deployment.output_limit_missing",
	"reason": sprintf("outputs.%s is not a number above zero", [limit]),
	"remedy": sprintf("set outputs.%s to a number from 1 to %d", [limit, ceiling]),
} if {
	some limit, ceiling in deployment.limits.outputs
	not output_limited(limit)
}
