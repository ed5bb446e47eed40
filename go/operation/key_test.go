package operation_test

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/writ-runtime/writ/go/canonical"
	"github.com/writ-runtime/writ/go/operation"
	"github.com/writ-runtime/writ/go/reason"
	"github.com/writ-runtime/writ/schemas"
)

func TestKey(t *testing.T) {
	k, err := operation.NewKey("writ", "att_1", "reference-local", operation.Start, "main")
	if err != nil || k != "writ/att_1/reference-local/start/main" {
		t.Fatalf("%q, %v", k, err)
	}
	if k.Namespace() != "writ" || k.Scope() != "att_1" || k.Actor() != "reference-local" || k.Kind() != operation.Start || k.Purpose() != "main" {
		t.Errorf("the parts of %q do not come back", k)
	}
	back, err := operation.ParseKey(string(k))
	if err != nil || back != k {
		t.Errorf("%q, %v", back, err)
	}
	for _, bad := range []string{"", "a", "a/b/c/d", "a/b/c/d/e/f", "a//c/d/e", "a/b/c/d/ ", "a/b/c/d/é", "a/b/c/d/" + strings.Repeat("x", 129)} {
		if _, err := operation.ParseKey(bad); !reason.Is(err, reason.OperationKeyMalformed) {
			t.Errorf("%q: %v", bad, err)
		}
	}
}

// Different parts never share a key, whatever stands in them (O1).
func TestKeysAreUnique(t *testing.T) {
	part := rapid.StringMatching(`[a-z/._:-]{0,6}`)
	rapid.Check(t, func(t *rapid.T) {
		a := [5]string{part.Draw(t, "a"), part.Draw(t, "a"), part.Draw(t, "a"), part.Draw(t, "a"), part.Draw(t, "a")}
		b := [5]string{part.Draw(t, "b"), part.Draw(t, "b"), part.Draw(t, "b"), part.Draw(t, "b"), part.Draw(t, "b")}
		ka, erra := operation.NewKey(a[0], a[1], a[2], operation.Kind(a[3]), a[4])
		kb, errb := operation.NewKey(b[0], b[1], b[2], operation.Kind(b[3]), b[4])
		if erra == nil && errb == nil && ka == kb && a != b {
			t.Fatalf("%q and %q share %q", a, b, ka)
		}
	})
}

func TestIntentCheck(t *testing.T) {
	good := operation.Intent{
		Key: "writ/att_1/wasm/provision/main", Digest: canonical.Sum([]byte("x")), Kind: operation.Provision,
		Class: operation.Reconcilable, Resource: "att_1.g1",
	}
	if err := good.Check(); err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func(*operation.Intent){
		"key":             func(i *operation.Intent) { i.Key = "nonsense" },
		"foreign kind":    func(i *operation.Intent) { i.Kind = "polish" },
		"kind of the key": func(i *operation.Intent) { i.Kind = operation.Destroy },
		"class":           func(i *operation.Intent) { i.Class = "hopeful" },
		"digest":          func(i *operation.Intent) { i.Digest = "" },
		"resource":        func(i *operation.Intent) { i.Resource = "" },
	} {
		bad := good
		change(&bad)
		if err := bad.Check(); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}

func TestEveryKindHasAReceiptAndAClass(t *testing.T) {
	raw, err := schemas.FS.ReadFile("effect-classes.v1.json")
	if err != nil {
		t.Fatal(err)
	}
	classes, err := operation.ParseClasses(raw)
	if err != nil {
		t.Fatal(err)
	}
	names := map[string]bool{}
	for _, k := range operation.Kinds() {
		if name := k.ReceiptName(); name == "" || names[name] {
			t.Errorf("%s has the receipt name %q", k, name)
		} else {
			names[name] = true
		}
		if !classes.Of(k).Valid() {
			t.Errorf("%s has the class %q", k, classes.Of(k))
		}
	}
	for _, bad := range []string{
		strings.Replace(string(raw), `"provision"`, `"polish"`, 1),
		strings.Replace(string(raw), `"reconcilable"`, `"hopeful"`, 1),
		strings.Replace(string(raw), `{"operation": "cancel", "effect_class": "provider_idempotent", "contained": true},`, "", 1),
	} {
		if _, err := operation.ParseClasses([]byte(bad)); err == nil {
			t.Error("a malformed registry was accepted")
		}
	}
}

func TestRefusedKeepsTheReason(t *testing.T) {
	out := operation.Refused(operation.NotApplied, reason.New(reason.FreezeMissing, "no output", "report.json", "write it"))
	if out.Code != reason.FreezeMissing || out.Detail != "no output (report.json)" || out.Remedy != "write it" {
		t.Errorf("%+v", out)
	}
}
