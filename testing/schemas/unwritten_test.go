package schemas_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/writ-runtime/writ/go/lifecycle"
	"github.com/writ-runtime/writ/go/operation"
	"github.com/writ-runtime/writ/testing/fixture"
)

// Events whose bodies no release writes yet can be written: one of every such family
// matches its schema, under a subject of its machine, and nothing that differs from it does.
func TestUnwrittenEventsCanBeWritten(t *testing.T) {
	const (
		at     = `{"domain":"host","unix_ms":1767323045000}`
		used   = `{"calls":1,"tokens":10,"wall_ms":1000}`
		budget = `{"calls":2,"tokens":20,"wall_ms":2000,"money":{"amount":100,"currency":"EUR","scale":2}}`
	)
	digest, key := fixture.Digest("evidence"), key(t, operation.Start)
	bodies := map[string]string{
		"authorization":        `{"verb":"cancel-work","target":"` + string(fixture.WorkOrder) + `","flags":[{"name":"reason","value":"late"}],"principal":"uid:1000","allowed":true}`,
		"budget_block":         `{"account":"research","code":"kernel.not_ready","why":"it is spent","asked":` + budget + `}`,
		"budget_ceiling":       `{"ceiling":` + budget + `}`,
		"budget_settlement":    fmt.Sprintf(`{"reservation":%q,"used":%s,"returned":%s}`, fixture.Reservation, used, used),
		"clock_block":          `{"now":` + at + `,"last":` + at + `,"code":"kernel.not_ready"}`,
		"clock_reconciliation": `{"from":` + at + `,"expected_version":3,"principal":"uid:1000","reason":"the battery was changed"}`,
		"command_outcome":      `{"subject":"work_order/` + string(fixture.WorkOrder) + `","version":2}`,
		"dependency":           fmt.Sprintf(`{"code":"kernel.not_ready","why":"it waits","on":[{"work_order":%q,"state":"active"}]}`, fixture.WorkOrder),
		"disposition":          fmt.Sprintf(`{"operation":%q,"disposition":"confirmed_absent","evidence":%q,"expected_version":4,"principal":"uid:1000","reason":"the other side has none"}`, key, digest),
		"drawn":                fmt.Sprintf(`{"reservation":%q,"budget":%s}`, fixture.Reservation, budget),
		"lease":                `{"at":` + at + `,"until":` + at + `,"clock_version":1}`,
		"quarantine":           fmt.Sprintf(`{"delivery":%q,"first":%q,"other":%q}`, delivery, digest, fixture.Digest("other")),
		"usage":                fmt.Sprintf(`{"operation":%q,"receipt":%q,"used":%s,"complete":false}`, key, digest, used),
	}
	subjects := map[string]string{
		"account": "research", "attempt": string(fixture.Attempt), "budget": string(fixture.Reservation), "clock": "host",
		"command": delivery, "operation": string(key), "outbox": string(fixture.Attempt) + "/publish", "work_order": string(fixture.WorkOrder),
	}
	r, files := open(t), readTree(t)
	n, _ := files.at("event.v1.schema.json#")
	written := map[string]bool{}
	for _, rule := range n.value["allOf"].([]any) {
		condition := rule.(map[string]any)["if"].(map[string]any)["properties"].(map[string]any)
		family, ok := condition["family"].(map[string]any)
		if !ok {
			continue
		}
		then, _ := rule.(map[string]any)["then"].(map[string]any)["properties"].(map[string]any)["body"].(map[string]any)
		ref, _ := then["$ref"].(string)
		body, ok := bodies[strings.TrimPrefix(ref, "#/$defs/")]
		if !ok {
			continue
		}
		written["event/"+strings.TrimPrefix(ref, "#/$defs/")] = true
		for i, name := range (node{value: family}).strings("enum") {
			machine, _ := lifecycle.Family(name).Split()
			e := lifecycle.Event{Subject: lifecycle.Of(machine, subjects[machine]), Version: 1, Family: lifecycle.Family(name), Machine: 1, Body: []byte(body)}
			d := document{name, "writ.event.v1", canonicalize(t, marshal(t, e))}
			if d.good(t, r); i == 0 {
				// A target is whatever a person wrote; a subject has patterns of its own.
				d.tampered(t, r, func(path string) bool { return path == "/subject" || path == "/body/subject" || path == "/body/target" })
			}
		}
	}
	for name := range unwritten() {
		if !written[name] {
			t.Errorf("no event shows %s", name)
		}
	}
}
