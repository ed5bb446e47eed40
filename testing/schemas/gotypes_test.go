package schemas_test

import (
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/writ-runtime/writ/go/admission"
	"github.com/writ-runtime/writ/go/api/wire"
	"github.com/writ-runtime/writ/go/attemptbundle"
	"github.com/writ-runtime/writ/go/attestation"
	"github.com/writ-runtime/writ/go/broker"
	"github.com/writ-runtime/writ/go/canonical"
	"github.com/writ-runtime/writ/go/capability"
	"github.com/writ-runtime/writ/go/executor"
	"github.com/writ-runtime/writ/go/ingress"
	"github.com/writ-runtime/writ/go/kernel"
	"github.com/writ-runtime/writ/go/lifecycle"
	"github.com/writ-runtime/writ/go/operation"
	"github.com/writ-runtime/writ/go/outbox"
	"github.com/writ-runtime/writ/go/pin"
	"github.com/writ-runtime/writ/go/policy"
	"github.com/writ-runtime/writ/go/protocol"
	"github.com/writ-runtime/writ/go/reason"
	"github.com/writ-runtime/writ/go/retention"
	"github.com/writ-runtime/writ/go/workorder"
	"github.com/writ-runtime/writ/testing/fixture"
)

// goTypes are the types whose documents the schemas describe, by schema. What lies within
// them is found from here.
func goTypes() map[string]reflect.Type {
	return map[string]reflect.Type{
		"accounts":                 reflect.TypeFor[admission.Accounts](),
		"deployment":               reflect.TypeFor[admission.Deployment](),
		"action-grant":             reflect.TypeFor[broker.Token](),
		"artifact-manifest":        reflect.TypeFor[protocol.ArtifactManifest](),
		"attempt-bundle":           reflect.TypeFor[attemptbundle.Bundle](),
		"attempt-descriptor":       reflect.TypeFor[workorder.Descriptor](),
		"checkpoint-envelope":      reflect.TypeFor[workorder.CheckpointEnvelope](),
		"checkpoint-tool-progress": reflect.TypeFor[workorder.ToolProgress](),
		"attempt-reservation":      reflect.TypeFor[workorder.Reservation](),
		"attempt-result":           reflect.TypeFor[workorder.Result](),
		"attestation-facts":        reflect.TypeFor[attestation.Table](),
		"attestation-report":       reflect.TypeFor[attestation.Report](),
		"claim":                    reflect.TypeFor[wire.Claim](),
		"context-package":          reflect.TypeFor[workorder.ContextPackage](),
		"decision":                 reflect.TypeFor[policy.Record](),
		"effect-proposal":          reflect.TypeFor[outbox.Proposal](),
		"environment-manifest":     reflect.TypeFor[attemptbundle.EnvironmentManifest](),
		"event":                    reflect.TypeFor[lifecycle.Event](),
		"execution-locator":        reflect.TypeFor[wire.Locator](),
		"executor-capabilities":    reflect.TypeFor[executor.Capabilities](),
		"ingress-receipt":          reflect.TypeFor[ingress.Receipt](),
		"input-manifest":           reflect.TypeFor[protocol.InputManifest](),
		"lock-adapters":            reflect.TypeFor[pin.Lock](),
		"lock-policies":            reflect.TypeFor[pin.Lock](),
		"lock-tools":               reflect.TypeFor[pin.Lock](),
		"operation-intent":         reflect.TypeFor[operation.Intent](),
		"operation-outcome":        reflect.TypeFor[operation.Outcome](),
		"operation-record":         reflect.TypeFor[operation.Record](),
		"outbox-destinations":      reflect.TypeFor[outbox.Destinations](),
		"prompt-payload":           reflect.TypeFor[workorder.PromptPayload](),
		"publication":              reflect.TypeFor[outbox.Publication](),
		"receipt":                  reflect.TypeFor[protocol.Receipt](),
		"request":                  reflect.TypeFor[protocol.Request](),
		"requested-grants":         reflect.TypeFor[[]capability.Request](),
		"retained":                 reflect.TypeFor[retention.Manifest](),
		"role-package":             reflect.TypeFor[workorder.RolePackage](),
		"transitions":              reflect.TypeFor[lifecycle.Machine](),
		"workorder":                reflect.TypeFor[workorder.WorkOrder](),

		"actions/action": reflect.TypeFor[capability.Action](),

		"event/activated":            reflect.TypeFor[kernel.Activated](),
		"event/answer":               reflect.TypeFor[kernel.Answer](),
		"event/attested":             reflect.TypeFor[attestation.Report](),
		"event/blocked":              reflect.TypeFor[kernel.Blocked](),
		"event/born":                 reflect.TypeFor[kernel.Born](),
		"event/cancel_requested":     reflect.TypeFor[kernel.CancelRequested](),
		"event/checkpoint":           reflect.TypeFor[kernel.Checkpoint](),
		"event/completion":           reflect.TypeFor[protocol.CompletionReport](),
		"event/descriptor":           reflect.TypeFor[workorder.Descriptor](),
		"event/lease":                reflect.TypeFor[kernel.Lease](),
		"event/failure":              reflect.TypeFor[kernel.Failure](),
		"event/effect_proposal":      reflect.TypeFor[kernel.Proposed](),
		"event/mode_raised":          reflect.TypeFor[kernel.ModeRaised](),
		"event/mode_evidence":        reflect.TypeFor[kernel.ModeEvidence](),
		"event/resumed":              reflect.TypeFor[kernel.Resumed](),
		"event/sending":              reflect.TypeFor[kernel.Begun](),
		"event/fenced":               reflect.TypeFor[kernel.Fenced](),
		"event/intent":               reflect.TypeFor[operation.Intent](),
		"event/policy":               reflect.TypeFor[attemptbundle.Policy](),
		"event/reconciliation":       reflect.TypeFor[protocol.EnvironmentReconciliation](),
		"event/recovered":            reflect.TypeFor[kernel.Recovered](),
		"event/reduction":            reflect.TypeFor[kernel.Reduction](),
		"event/requested":            reflect.TypeFor[kernel.Requested](),
		"event/retention":            reflect.TypeFor[protocol.Retention](),
		"event/reservation":          reflect.TypeFor[workorder.Reservation](),
		"event/observation":          reflect.TypeFor[lifecycle.Observation](),
		"event/authorization":        reflect.TypeFor[kernel.Authorization](),
		"event/command_outcome":      reflect.TypeFor[kernel.CommandOutcome](),
		"event/disposition":          reflect.TypeFor[kernel.Disposition](),
		"event/budget_block":         reflect.TypeFor[kernel.BudgetBlock](),
		"event/budget_ceiling":       reflect.TypeFor[kernel.BudgetCeiling](),
		"event/budget_settlement":    reflect.TypeFor[kernel.BudgetSettlement](),
		"event/drawn":                reflect.TypeFor[kernel.Drawn](),
		"event/usage":                reflect.TypeFor[kernel.Usage](),
		"event/quarantine":           reflect.TypeFor[kernel.Quarantined](),
		"event/dependency":           reflect.TypeFor[kernel.Dependency](),
		"event/clock_block":          reflect.TypeFor[kernel.ClockBlock](),
		"event/clock_reconciliation": reflect.TypeFor[kernel.ClockReconciliation](),
		"event/reserved":             reflect.TypeFor[kernel.OrderReserved](),
		"event/retry_wait":           reflect.TypeFor[kernel.RetryWait](),
		"event/result":               reflect.TypeFor[workorder.Result](),
		"event/submitted":            reflect.TypeFor[kernel.Submitted](),

		"retained/file": reflect.TypeFor[retention.File](),

		"request/cancel":         reflect.TypeFor[protocol.CancelParameters](),
		"request/checkpoint":     reflect.TypeFor[protocol.CheckpointParameters](),
		"request/cleanup":        reflect.TypeFor[protocol.RetentionParameters](),
		"request/collect":        reflect.TypeFor[protocol.CollectParameters](),
		"request/destroy":        reflect.TypeFor[protocol.RetentionParameters](),
		"request/freeze_outputs": reflect.TypeFor[protocol.FreezeParameters](),
		"request/launch":         reflect.TypeFor[protocol.LaunchParameters](),
		"request/materialize":    reflect.TypeFor[protocol.MaterializeParameters](),
		"request/prepare":        reflect.TypeFor[protocol.PrepareParameters](),
		"request/provision":      reflect.TypeFor[protocol.ProvisionParameters](),
		"request/reset":          reflect.TypeFor[protocol.ResetParameters](),
		"request/sending":        reflect.TypeFor[protocol.SendingParameters](),
		"request/start":          reflect.TypeFor[protocol.StartParameters](),

		"result/branch":            reflect.TypeFor[protocol.BranchResult](),
		"result/cancel":            reflect.TypeFor[protocol.RemovalResult](),
		"result/cleanup":           reflect.TypeFor[protocol.RemovalResult](),
		"result/collect":           reflect.TypeFor[protocol.CollectResult](),
		"result/collected":         reflect.TypeFor[executor.Collected](),
		"result/completion_report": reflect.TypeFor[protocol.CompletionReport](),
		"result/destroy":           reflect.TypeFor[protocol.RemovalResult](),
		"result/freeze_outputs":    reflect.TypeFor[protocol.FreezeResult](),
		"result/launch":            reflect.TypeFor[protocol.LaunchResult](),
		"result/materialize":       reflect.TypeFor[protocol.MaterializeResult](),
		"result/prepare":           reflect.TypeFor[protocol.PrepareResult](),
		"result/publication":       reflect.TypeFor[protocol.PublicationResult](),
		"result/provision":         reflect.TypeFor[protocol.ProvisionResult](),
		"result/reconciliation":    reflect.TypeFor[protocol.EnvironmentReconciliation](),
		"result/removal":           reflect.TypeFor[protocol.RemovalResult](),
		"result/retention":         reflect.TypeFor[protocol.Retention](),
		"result/reset":             reflect.TypeFor[protocol.ResetResult](),
		"result/start":             reflect.TypeFor[protocol.StartResult](),
	}
}

// withoutType are the schemas of documents that the code reads or writes without a type of
// its own that others could see. They are held against a document that shows every field.
func withoutType(t testing.TB) map[string][]byte {
	return map[string][]byte{
		"actions":        embedded(t, "actions.v1.json"),
		"effect-classes": embedded(t, "effect-classes.v1.json"),
		"journal-batch":  finished(t).entries[0].Body,
		"reasons":        embedded(t, "reasons.v1.json"),
		"registry":       embedded(t, "registry.json"),

		// The kernel writes these as they stand.
		"event/concluded": []byte(`{"attempt":""}`),
		"event/empty":     []byte(`{}`),
	}
}

// unwritten are bodies of events that the registry has and no release writes yet, each in
// a document that shows every field: a type takes its place with the first that does.
func unwritten() map[string][]byte {
	return map[string][]byte{}
}

// defs names the shared definition that every value of a Go type must match.
func defs() map[reflect.Type]string {
	return map[reflect.Type]string{
		reflect.TypeFor[canonical.Digest]():        "digest",
		reflect.TypeFor[operation.Key]():           "operation_key",
		reflect.TypeFor[operation.Kind]():          "operation_kind",
		reflect.TypeFor[operation.EffectClass]():   "effect_class",
		reflect.TypeFor[operation.Knowledge]():     "knowledge",
		reflect.TypeFor[reason.Code]():             "reason_code",
		reflect.TypeFor[workorder.ID]():            "work_order_id",
		reflect.TypeFor[workorder.AttemptID]():     "attempt_id",
		reflect.TypeFor[workorder.ReservationID](): "reservation_id",
		reflect.TypeFor[capability.Mode]():         "mode",
		reflect.TypeFor[capability.Layer]():        "layer",
		reflect.TypeFor[capability.Scope]():        "scope",
		reflect.TypeFor[capability.ScopeKind]():    "scope_kind",
		reflect.TypeFor[lifecycle.Subject]():       "subject",
		reflect.TypeFor[lifecycle.Family]():        "family",
	}
}

// locate turns "event/answer" into where that schema stands.
func locate(name string) string {
	file, def, within := strings.Cut(name, "/")
	location := file + ".v1.schema.json#"
	if within {
		location += "/$defs/" + def
	}
	return location
}

// Every object that a schema describes has the fields of a Go struct, as many and as
// required; every such object is held against one.
func TestSchemasAreThoseOfTheGoTypes(t *testing.T) {
	c := comparison{T: t, tree: readTree(t), defs: defs(), held: map[string]bool{}}
	for _, name := range slices.Sorted(maps.Keys(goTypes())) {
		n, ok := c.tree.at(locate(name))
		if !ok {
			t.Errorf("%s: there is no such schema", name)
			continue
		}
		c.compare(name, n.resolved(t), goTypes()[name])
	}
	shown := withoutType(t)
	maps.Copy(shown, unwritten())
	for _, name := range slices.Sorted(maps.Keys(shown)) {
		n, ok := c.tree.at(locate(name))
		if !ok {
			t.Errorf("%s: there is no such schema", name)
			continue
		}
		c.show(name, n, decode(t, shown[name]))
	}
	c.tree.walk(func(n node) {
		if !c.held[n.location()] {
			t.Errorf("%s is held against no Go type and no document", n.location())
		}
	})
}

type comparison struct {
	*testing.T
	tree tree
	defs map[reflect.Type]string
	held map[string]bool
}

func (c comparison) compare(at string, n node, typ reflect.Type) {
	c.Helper()
	if typ == reflect.TypeFor[canonical.Raw]() {
		if n.value["type"] != "object" && n.value["anyOf"] == nil && n.value["not"] == nil {
			c.Errorf("%s holds a document of its own and says nothing about it", at)
		}
		return
	}
	if def, ok := c.defs[typ]; ok {
		c.matches(at, n, def)
		return
	}
	switch typ.Kind() {
	case reflect.Pointer:
		c.compare(at, n, typ.Elem())
	case reflect.Slice:
		items, ok := n.under("items")
		if !ok || n.value["type"] != "array" {
			c.Errorf("%s is a list of %s in Go, and %v in %s", at, typ.Elem(), n.value["type"], n.location())
			return
		}
		c.compare(at+"/*", items.resolved(c), typ.Elem())
	case reflect.Struct:
		c.compareStruct(at, n, typ)
	case reflect.Bool:
		if n.value["type"] != "boolean" && n.value["const"] != true {
			c.Errorf("%s is true or false in Go, and %v in %s", at, n.value["type"], n.location())
		}
	case reflect.String:
		_, isConst := n.value["const"].(string)
		if n.value["type"] != "string" && !isConst && len(n.strings("enum")) == 0 {
			c.Errorf("%s is a string in Go, and %v in %s", at, n.value["type"], n.location())
		}
	case reflect.Int, reflect.Int64, reflect.Uint64:
		c.integer(at, n, typ)
	default:
		c.Errorf("%s: nobody has said how a %s is described", at, typ)
	}
}

func (c comparison) compareStruct(at string, n node, typ reflect.Type) {
	c.Helper()
	if !n.object() || n.value["additionalProperties"] != false {
		c.Errorf("%s is a %s in Go, and no closed object in %s", at, typ, n.location())
		return
	}
	c.held[n.location()] = true
	fields := jsonFields(typ)
	var all, required []string
	for name, f := range fields {
		all = append(all, name)
		if !f.optional {
			required = append(required, name)
		}
	}
	slices.Sort(all)
	slices.Sort(required)
	if !slices.Equal(all, n.properties()) {
		c.Errorf("%s: %s has the fields %v, %s has %v", at, typ, all, n.location(), n.properties())
		return
	}
	if !slices.Equal(required, n.required()) {
		c.Errorf("%s: %s always writes %v, %s requires %v", at, typ, required, n.location(), n.required())
	}
	for _, name := range all {
		f := fields[name]
		at := at + "/" + name
		p, ok := n.under("properties", name)
		if !ok {
			c.Errorf("%s: %s says nothing about it", at, n.location())
			continue
		}
		described := p.value["description"] != nil || p.resolved(c).value["description"] != nil || name == "kind"
		if !described {
			c.Errorf("%s: %s has no description", at, p.location())
		}
		p = p.resolved(c)
		inner, nullable := p.orNull(c)
		if wants := f.typ.Kind() == reflect.Pointer && !f.optional; wants != nullable {
			c.Errorf("%s: null in Go is %v, in %s it is %v", at, wants, p.location(), nullable)
			continue
		}
		if nullable {
			p = inner
		}
		c.compare(at, p, f.typ)
	}
}

// integer holds that an integer has bounds, and those within which canonical JSON counts.
func (c comparison) integer(at string, n node, typ reflect.Type) {
	c.Helper()
	low, lok := n.value["minimum"].(float64)
	high, hok := n.value["maximum"].(float64)
	switch {
	case n.value["type"] != "integer" || !lok || !hok:
		c.Errorf("%s is an integer in Go, and no integer with bounds in %s", at, n.location())
	case low < -canonical.MaxInteger || high > canonical.MaxInteger || low > high:
		c.Errorf("%s: %s has the bounds %v and %v", at, n.location(), low, high)
	case typ.Kind() == reflect.Uint64 && low < 0:
		c.Errorf("%s is never negative in Go, and may be in %s", at, n.location())
	}
}

// matches holds that a schema accepts nothing that the shared definition does not.
func (c comparison) matches(at string, n node, def string) {
	c.Helper()
	d, ok := c.tree.at("common.v1.schema.json#/$defs/" + def)
	if !ok {
		c.Fatalf("there is no shared definition %s", def)
	}
	pattern, _ := d.value["pattern"].(string)
	values := n.strings("enum")
	switch {
	case n.value["pattern"] == pattern && pattern != "":
	case pattern != "" && len(values) > 0:
		for _, v := range values {
			if !regexp.MustCompile(pattern).MatchString(v) {
				c.Errorf("%s: %q is no %s", at, v, def)
			}
		}
	case len(values) > 0:
		for _, v := range values {
			if !slices.Contains(d.strings("enum"), v) {
				c.Errorf("%s: %q is no %s", at, v, def)
			}
		}
	default:
		c.Errorf("%s is a %s and described otherwise in %s", at, def, n.location())
	}
}

// show holds a schema against a document that shows each of its fields.
func (c comparison) show(at string, n node, v any) {
	c.Helper()
	some, every := map[string]map[string]bool{}, map[string]map[string]bool{}
	at0 := map[string]node{}
	var look func(n node, v any)
	look = func(n node, v any) {
		n = n.resolved(c)
		switch x := v.(type) {
		case map[string]any:
			l := n.location()
			if _, seen := at0[l]; !seen {
				at0[l], some[l], every[l] = n, map[string]bool{}, map[string]bool{}
				for name := range x {
					every[l][name] = true
				}
			}
			for name := range every[l] {
				if _, ok := x[name]; !ok {
					delete(every[l], name)
				}
			}
			for name, member := range x {
				some[l][name] = true
				if p, ok := n.under("properties", name); ok {
					look(p, member)
				}
			}
		case []any:
			if items, ok := n.under("items"); ok {
				for _, item := range x {
					look(items, item)
				}
			}
		}
	}
	look(n, v)
	for l, n := range at0 {
		if n.file != strings.TrimSuffix(strings.SplitN(locate(at), "#", 2)[0], "#") || c.held[l] {
			continue // held against a Go type
		}
		if !n.object() {
			continue // described elsewhere, by the kind of what holds it
		}
		c.held[l] = true
		if all := slices.Sorted(maps.Keys(some[l])); !slices.Equal(all, n.properties()) {
			c.Errorf("%s shows the fields %v, %s has %v", at, all, l, n.properties())
		}
		for _, name := range n.required() {
			if !every[l][name] {
				c.Errorf("%s lacks %s, which %s requires", at, name, l)
			}
		}
	}
}

type jsonField struct {
	typ      reflect.Type
	optional bool
}

// jsonFields are the fields that canonical.Marshal writes of a struct.
func jsonFields(typ reflect.Type) map[string]jsonField {
	fields := map[string]jsonField{}
	for i := range typ.NumField() {
		f := typ.Field(i)
		tag, tagged := f.Tag.Lookup("json")
		if f.Anonymous && !tagged {
			maps.Copy(fields, jsonFields(f.Type))
			continue
		}
		name, options, _ := strings.Cut(tag, ",")
		if !f.IsExported() || name == "-" {
			continue
		}
		fields[name] = jsonField{f.Type, strings.Contains(options, "omitempty") || strings.Contains(options, "omitzero")}
	}
	return fields
}

// Lists that stand in schemas are those of the code and of the registries.
func TestListsAreThoseOfTheCode(t *testing.T) {
	files := readTree(t)
	list := func(location string) []string {
		n, ok := files.at(location)
		if !ok {
			t.Fatalf("%s is not there", location)
		}
		got := n.strings("enum")
		slices.Sort(got)
		return got
	}
	receipts := []string{lifecycle.RetentionReceipt}
	for _, k := range operation.Kinds() {
		receipts = append(receipts, k.ReceiptName())
	}
	var machines, families []string
	for _, m := range fixture.Kernel(t).Transitions().Machines() {
		machines = append(machines, m.Name)
		for _, tr := range m.Transitions {
			families = append(families, string(tr.Family))
		}
	}
	for location, want := range map[string][]string{
		"common.v1.schema.json#/$defs/operation_kind":     texts(operation.Kinds()),
		"common.v1.schema.json#/$defs/mode":               texts(capability.Modes()),
		"common.v1.schema.json#/$defs/layer":              texts(capability.Layers()),
		"common.v1.schema.json#/$defs/policy_layer":       texts(capability.PolicyLayers()),
		"common.v1.schema.json#/$defs/machine":            machines,
		"receipt.v1.schema.json#/properties/name":         receipts,
		"event.v1.schema.json#/properties/family":         families,
		"ingress-receipt.v1.schema.json#/properties/verb": {string(ingress.Run), string(ingress.Submit), string(ingress.Tick), string(ingress.Reconcile), string(ingress.Command), string(ingress.Recover)},
	} {
		slices.Sort(want)
		if got := list(location); !slices.Equal(got, slices.Compact(want)) {
			t.Errorf("%s lists %v, the code %v", location, got, want)
		}
	}
}

// Every family of events has exactly one body.
func TestEveryFamilyHasOneBody(t *testing.T) {
	n, ok := readTree(t).at("event.v1.schema.json#")
	if !ok {
		t.Fatal("there is no schema of events")
	}
	bodies := map[string]int{}
	for _, rule := range n.value["allOf"].([]any) {
		condition := node{value: rule.(map[string]any)["if"].(map[string]any)["properties"].(map[string]any)}
		if f, ok := condition.value["family"].(map[string]any); ok {
			for _, name := range (node{value: f}).strings("enum") {
				bodies[name]++
			}
		}
	}
	family, _ := n.under("properties", "family")
	for _, name := range family.strings("enum") {
		if bodies[name] != 1 {
			t.Errorf("%s has %d bodies", name, bodies[name])
		}
		delete(bodies, name)
	}
	if len(bodies) > 0 {
		t.Errorf("bodies of what is no event: %v", bodies)
	}
}

func texts[T ~string](values []T) []string {
	out := make([]string, len(values))
	for i, v := range values {
		out[i] = string(v)
	}
	return out
}
