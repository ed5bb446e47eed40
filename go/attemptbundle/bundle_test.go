package attemptbundle_test

import (
	"flag"
	"os"
	"strings"
	"testing"

	"github.com/writ-runtime/writ/go/attemptbundle"
	"github.com/writ-runtime/writ/go/canonical"
	"github.com/writ-runtime/writ/go/protocol"
	"github.com/writ-runtime/writ/go/reason"
	"github.com/writ-runtime/writ/testing/fixture"
)

var update = flag.Bool("update", false, "write the golden file")

const golden = "testdata/bundle.v1.json"

func compile(t *testing.T, change func(*attemptbundle.Bundle)) (*attemptbundle.Compiled, error) {
	t.Helper()
	k := fixture.Kernel(t)
	b := *fixture.Bundle(t, k, fixture.Reserved(t, k), nil).Bundle()
	if change != nil {
		change(&b)
	}
	return attemptbundle.Compile(b)
}

// The bytes of the fixed bundle never change: they are the form in which a released
// bundle is kept. The registry digests in it are those of this release, so a change of
// a registry shows here and is to be read before it is accepted.
func TestGolden(t *testing.T) {
	c, err := compile(t, nil)
	if err != nil {
		t.Fatal(err)
	}
	if *update {
		if err := os.WriteFile(golden, append(c.Bytes(), '\n'), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if string(c.Bytes())+"\n" != string(want) {
		t.Errorf("the bundle is\n%s\nand was\n%s", c.Bytes(), want)
	}
	if c.Digest() != canonical.Sum(c.Bytes()) {
		t.Error("the digest is not that of the bytes")
	}
}

func TestSameBundleSameBytes(t *testing.T) {
	a, err := compile(t, nil)
	if err != nil {
		t.Fatal(err)
	}
	// What is nil and what is empty is the same order.
	b, err := compile(t, func(b *attemptbundle.Bundle) { b.Deltas, b.Pins.Skills, b.Ceilings.Credentials = nil, nil, nil })
	if err != nil {
		t.Fatal(err)
	}
	if string(a.Bytes()) != string(b.Bytes()) {
		t.Errorf("%s\n%s", a.Bytes(), b.Bytes())
	}
}

func TestParse(t *testing.T) {
	c, err := compile(t, nil)
	if err != nil {
		t.Fatal(err)
	}
	back, err := attemptbundle.Parse(c.Bytes())
	if err != nil || back.Digest() != c.Digest() {
		t.Fatalf("%v, %v", back, err)
	}
	text := string(c.Bytes())
	for name, changed := range map[string]string{
		"unknown field":        strings.Replace(text, `{"attempt":`, `{"aside":1,"attempt":`, 1),
		"unknown field within": strings.Replace(text, `"ceilings":{`, `"ceilings":{"aside":1,`, 1),
		"white space":          strings.Replace(text, `,"`, `, "`, 1),
		"duplicate key":        strings.Replace(text, `{"attempt":`, `{"mode":"observe","attempt":`, 1),
		"float":                strings.Replace(text, `"wall_ms":30000`, `"wall_ms":30000.0`, 1),
		"missing part":         strings.Replace(text, `"cause":`, `"because":`, 1),
	} {
		if changed == text {
			t.Fatalf("%s: the text was not changed", name)
		}
		if _, err := attemptbundle.Parse([]byte(changed)); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}

// offered takes checkpoints within bounds.
//
//writ:immutable never reassigned
var offered = attemptbundle.CheckpointPolicy{Policy: "offered", PayloadKind: "writ.checkpoint.tool_progress.v1", MaxBytes: 1024, MaxCount: 2, IntervalMillis: 1000}

// startFrom makes a bundle start from a checkpoint, and puts a payload among its inputs.
func startFrom(b *attemptbundle.Bundle, payload canonical.Digest, size int64) {
	b.Checkpoint = offered
	b.StartsFrom = &attemptbundle.StartingPoint{
		Attempt: "att_01939a3c-7c1e-7000-8000-00000000000c", Envelope: fixture.Digest("envelope"),
		PayloadKind: offered.PayloadKind, Payload: fixture.Digest("payload"), PayloadBytes: 7, Position: 1,
	}
	b.Inputs.Inputs = append(b.Inputs.Inputs, protocol.InputMount{Name: "checkpoint", Files: []protocol.InputFile{{Path: "last.json", Size: size, Digest: payload}}})
}

// Each part of a bundle is under its digest: changing any changes the name.
func TestEveryPartIsCovered(t *testing.T) {
	c, err := compile(t, nil)
	if err != nil {
		t.Fatal(err)
	}
	other := fixture.Digest("other")
	for name, change := range map[string]func(*attemptbundle.Bundle){
		"reservation":    func(b *attemptbundle.Bundle) { b.Reservation.Digest = other },
		"work order":     func(b *attemptbundle.Bundle) { b.WorkOrder.Version++ },
		"attempt":        func(b *attemptbundle.Bundle) { b.Attempt.Version++ },
		"cause":          func(b *attemptbundle.Bundle) { b.Cause.ExpectedVersion++ },
		"fence":          func(b *attemptbundle.Bundle) { b.Fence.Generation++ },
		"role":           func(b *attemptbundle.Bundle) { b.Role.Profile = "other" },
		"delta":          func(b *attemptbundle.Bundle) { b.Deltas = []canonical.Digest{other} },
		"mode":           func(b *attemptbundle.Bundle) { b.Mode = "shadow" },
		"grants":         func(b *attemptbundle.Bundle) { b.Grants = b.Grants[:1] },
		"policy":         func(b *attemptbundle.Bundle) { b.Policy.Layers[0].Digest = other },
		"environment":    func(b *attemptbundle.Bundle) { b.Environment.Limits.Files++ },
		"inputs":         func(b *attemptbundle.Bundle) { b.Inputs.Inputs[0].Files[0].Digest = other },
		"outputs":        func(b *attemptbundle.Bundle) { b.Outputs.Policy.MaxBytes++ },
		"retention":      func(b *attemptbundle.Bundle) { b.Outputs.Retention.Keep = true },
		"execution":      func(b *attemptbundle.Bundle) { b.Execution.Arguments = []string{"--other"} },
		"adapter":        func(b *attemptbundle.Bundle) { b.Pins.Adapter.Digest = other },
		"ceilings":       func(b *attemptbundle.Bundle) { b.Ceilings.Tokens++ },
		"checkpoint":     func(b *attemptbundle.Bundle) { b.Checkpoint = offered },
		"starting point": func(b *attemptbundle.Bundle) { startFrom(b, fixture.Digest("payload"), 7) },
		"deadline":       func(b *attemptbundle.Bundle) { b.CancellationDeadlineMillis++ },
		"namespace":      func(b *attemptbundle.Bundle) { b.Operations.Namespace = "other" },
	} {
		changed, err := compile(t, func(b *attemptbundle.Bundle) {
			// The fixture shares what it points to: change a copy.
			b.Policy.Layers = append([]attemptbundle.LayerDigest(nil), b.Policy.Layers...)
			change(b)
		})
		if err != nil {
			t.Errorf("%s: %v", name, err)
		} else if changed.Digest() == c.Digest() {
			t.Errorf("%s is not covered by the digest", name)
		}
	}
}

func TestRefusals(t *testing.T) {
	for name, tc := range map[string]struct {
		code   reason.Code
		change func(*attemptbundle.Bundle)
	}{
		"unpinned adapter":        {reason.BundleUnpinned, func(b *attemptbundle.Bundle) { b.Pins.Adapter.Digest = "" }},
		"unpinned tool":           {reason.BundleUnpinned, func(b *attemptbundle.Bundle) { b.Pins.Tools[0].Digest = "" }},
		"tool without version":    {reason.BundleUnpinned, func(b *attemptbundle.Bundle) { b.Pins.Tools[0].Version = "" }},
		"tool that is not there":  {reason.BundleUnpinned, func(b *attemptbundle.Bundle) { b.Pins.Tools = nil }},
		"unpinned tokenizer":      {reason.BundleUnpinned, func(b *attemptbundle.Bundle) { b.Pins.Tokenizer = &attemptbundle.Pin{Name: "t"} }},
		"unpinned model":          {reason.BundleUnpinned, func(b *attemptbundle.Bundle) { b.Pins.Model = &attemptbundle.Model{Name: "m"} }},
		"unpinned root":           {reason.BundleUnpinned, func(b *attemptbundle.Bundle) { b.Environment.Root = "" }},
		"no policy decision":      {reason.BundleUnpinned, func(b *attemptbundle.Bundle) { b.Policy.Decision = "" }},
		"unknown mode":            {reason.CapabilityUnknownMode, func(b *attemptbundle.Bundle) { b.Mode = "anything" }},
		"no memory limit":         {reason.BundleUnbounded, func(b *attemptbundle.Bundle) { b.Environment.Limits.MemoryBytes = 0 }},
		"negative wall time":      {reason.BundleUnbounded, func(b *attemptbundle.Bundle) { b.Environment.Limits.WallMillis = -1 }},
		"no output bound":         {reason.BundleUnbounded, func(b *attemptbundle.Bundle) { b.Outputs.Policy.MaxBytes = 0 }},
		"kept without an end":     {reason.BundleUnbounded, func(b *attemptbundle.Bundle) { b.Environment.Retention.Keep = true }},
		"no expiry":               {reason.BundleUnbounded, func(b *attemptbundle.Bundle) { b.Reservation.ExpiresUnixMilli = 0 }},
		"another attempt's fence": {reason.BundleDigestMismatch, func(b *attemptbundle.Bundle) { b.Fence.Attempt = "att_other" }},
		"a value for a reference": {reason.BundleSecretValue, func(b *attemptbundle.Bundle) { b.Ceilings.Credentials = []string{"hunter2"} }},
		"a key in an argument":    {reason.BundleSecretValue, func(b *attemptbundle.Bundle) { b.Execution.Arguments = []string{"--key=AKIAABCDEFGHIJKLMNOP"} }},
		"a token in an argument":  {reason.BundleSecretValue, func(b *attemptbundle.Bundle) { b.Execution.Arguments = []string{"Bearer abcdefghijklmnop0123"} }},
		"an API key":              {reason.BundleSecretValue, func(b *attemptbundle.Bundle) { b.Execution.Arguments = []string{"x sk-abcdefghij0123456789"} }},
		"a token of a code host": {reason.BundleSecretValue, func(b *attemptbundle.Bundle) {
			b.Execution.Arguments = []string{"ghp_abcdefghijklmnopqrstuvwxyz0123456789"}
		}},
		"another code host's": {reason.BundleSecretValue, func(b *attemptbundle.Bundle) { b.Execution.Arguments = []string{"glpat-abcdefghij0123456789"} }},
		"a chat token":        {reason.BundleSecretValue, func(b *attemptbundle.Bundle) { b.Execution.Arguments = []string{"xoxb-0123456789-abcdef"} }},
		"a web token": {reason.BundleSecretValue, func(b *attemptbundle.Bundle) {
			b.Execution.Arguments = []string{"eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.x"}
		}},
		"basic credentials":     {reason.BundleSecretValue, func(b *attemptbundle.Bundle) { b.Execution.Arguments = []string{"BASIC dXNlcjpwYXNzd29yZA=="} }},
		"an access token":       {reason.BundleSecretValue, func(b *attemptbundle.Bundle) { b.Execution.Arguments = []string{"Access-Token: abcdef123"} }},
		"a private key":         {reason.BundleSecretValue, func(b *attemptbundle.Bundle) { b.Execution.Arguments = []string{"-----BEGIN PRIVATE KEY-----"} }},
		"a password":            {reason.BundleSecretValue, func(b *attemptbundle.Bundle) { b.Execution.Arguments = []string{"password=correct-horse"} }},
		"a URL with a password": {reason.BundleSecretValue, func(b *attemptbundle.Bundle) { b.Execution.Arguments = []string{"https://u:pw123@example.org"} }},
		"a socket":              {reason.BundleProviderLocator, func(b *attemptbundle.Bundle) { b.Environment.Workspace = "unix:///run/worker.sock" }},
		"a host path":           {reason.BundleProviderLocator, func(b *attemptbundle.Bundle) { b.Environment.Workspace = "/home/somebody/w" }},
		"a reset of no policy":  {reason.EnvironmentUnsupported, func(b *attemptbundle.Bundle) { b.Environment.Reset = "always" }},
		"a reset of what is kept": {reason.EnvironmentUnsupported, func(b *attemptbundle.Bundle) {
			b.Environment.Reset, b.Environment.Retention.Keep = attemptbundle.ResetBeforeDestroy, true
		}},
		"checkpoints of a policy unknown": {reason.BundleUnbounded, func(b *attemptbundle.Bundle) { b.Checkpoint.Policy = "manual" }},
		"bounds without checkpoints":      {reason.BundleUnbounded, func(b *attemptbundle.Bundle) { b.Checkpoint = offered; b.Checkpoint.Policy = "none" }},
		"checkpoints without a size":      {reason.BundleUnbounded, func(b *attemptbundle.Bundle) { b.Checkpoint = offered; b.Checkpoint.MaxBytes = 0 }},
		"checkpoints too large": {reason.BundleUnbounded, func(b *attemptbundle.Bundle) {
			b.Checkpoint = offered
			b.Checkpoint.MaxBytes = attemptbundle.MaxCheckpointBytes + 1
		}},
		"checkpoints without number": {reason.BundleUnbounded, func(b *attemptbundle.Bundle) { b.Checkpoint = offered; b.Checkpoint.MaxCount = 0 }},
		"checkpoints without pause":  {reason.BundleUnbounded, func(b *attemptbundle.Bundle) { b.Checkpoint = offered; b.Checkpoint.IntervalMillis = 0 }},
		"a start that is not given": {reason.BundleUnpinned, func(b *attemptbundle.Bundle) {
			startFrom(b, fixture.Digest("payload"), 7)
			b.Inputs.Inputs = b.Inputs.Inputs[:1]
		}},
		"a start from another payload": {reason.BundleUnpinned, func(b *attemptbundle.Bundle) { startFrom(b, fixture.Digest("other"), 7) }},
		"a start of another size":      {reason.BundleUnpinned, func(b *attemptbundle.Bundle) { startFrom(b, fixture.Digest("payload"), 8) }},
		"a process":                    {reason.BundleProviderLocator, func(b *attemptbundle.Bundle) { b.Environment.Workspace = "pid://4711" }},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := compile(t, tc.change)
			r, ok := reason.As(err)
			if !ok || r.Code != tc.code {
				t.Fatalf("got %v, want %s", err, tc.code)
			}
			if r.What == "" || r.Where == "" || r.Remedy == "" {
				t.Errorf("the refusal leaves something out: %q, %q, %q", r.What, r.Where, r.Remedy)
			}
			if strings.Contains(err.Error(), "hunter2") || strings.Contains(err.Error(), "AKIA") || strings.Contains(err.Error(), "horse") {
				t.Errorf("the refusal repeats the secret: %v", err)
			}
		})
	}
	if _, err := compile(t, func(b *attemptbundle.Bundle) {
		b.Pins.Model = &attemptbundle.Model{Name: "m", Unpinnable: "the provider names no revision"}
		b.Ceilings.Credentials = []string{"cred:model"}
	}); err != nil {
		t.Errorf("a model that says it cannot be pinned, and a reference: %v", err)
	}
}

func FuzzParse(f *testing.F) {
	raw, err := os.ReadFile(golden)
	if err != nil {
		f.Fatal(err)
	}
	f.Add([]byte(strings.TrimSpace(string(raw))))
	f.Fuzz(func(t *testing.T, b []byte) {
		c, err := attemptbundle.Parse(b)
		if err == nil && string(c.Bytes()) != string(b) {
			t.Fatal("accepted bytes that are not canonical")
		}
	})
}

// A bundle that a later rule would refuse is still read from a journal that holds it.
func TestParseJudgesTheFormAlone(t *testing.T) {
	c, err := compile(t, nil)
	if err != nil {
		t.Fatal(err)
	}
	old := strings.Replace(string(c.Bytes()), `"arguments":["--input","docs"]`, `"arguments":["--token","sk-aaaaaaaaaaaaaaaaaaaaaaaa"]`, 1)
	if old == string(c.Bytes()) {
		t.Fatal("the bundle was not changed")
	}
	back, err := attemptbundle.Parse([]byte(old))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := attemptbundle.Compile(*back.Bundle()); !reason.Is(err, reason.BundleSecretValue) {
		t.Errorf("compiled anew: %v", err)
	}
	if _, err := attemptbundle.Parse([]byte(strings.Replace(old, attemptbundle.Kind, "writ.attempt_bundle.v9", 1))); err == nil {
		t.Error("a bundle of another kind was read")
	}
}
