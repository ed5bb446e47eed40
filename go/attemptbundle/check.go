package attemptbundle

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/writ-runtime/writ/go/canonical"
	"github.com/writ-runtime/writ/go/capability"
	"github.com/writ-runtime/writ/go/operation"
	"github.com/writ-runtime/writ/go/reason"
)

// normalize makes nil slices empty, so that absent and empty have the same bytes.
func (b *Bundle) normalize() {
	b.Deltas = nonNil(b.Deltas)
	b.Grants = nonNil(b.Grants)
	b.Policy.Layers = nonNil(b.Policy.Layers)
	b.Environment.Credentials = nonNil(b.Environment.Credentials)
	b.Inputs.Inputs = nonNil(b.Inputs.Inputs)
	b.Execution.Arguments = nonNil(b.Execution.Arguments)
	b.Pins.Tools = nonNil(b.Pins.Tools)
	b.Pins.Plugins = nonNil(b.Pins.Plugins)
	b.Pins.Skills = nonNil(b.Pins.Skills)
	b.Pins.ToolSchemas = nonNil(b.Pins.ToolSchemas)
	b.Ceilings.Credentials = nonNil(b.Ceilings.Credentials)
}

func nonNil[T any](s []T) []T {
	if s == nil {
		return []T{}
	}
	return s
}

// check refuses a bundle that leaves open what it must fix. Every rule names the
// field, so that a reader finds it in the schema.
func check(b *Bundle) error {
	for _, d := range []struct {
		field  string
		digest canonical.Digest
	}{
		{"reservation.digest", b.Reservation.Digest},
		{"work_order.digest", b.WorkOrder.Digest},
		{"role.package", b.Role.Package},
		{"prompt", b.Prompt},
		{"context", b.Context},
		{"requested_grants", b.Requested},
		{"policy.decision", b.Policy.Decision},
		{"environment.provider.digest", b.Environment.Provider.Digest},
		{"environment.root", b.Environment.Root},
		{"execution.seed", b.Execution.Seed},
		{"pins.adapter.digest", b.Pins.Adapter.Digest},
		{"operations.effect_class_registry", b.Operations.EffectClasses},
		{"transition_registry", b.Transitions},
	} {
		if !d.digest.Valid() {
			return refuse(reason.BundleUnpinned, d.field, "is not pinned by a digest", "pin it in the lock, or leave out what needs it")
		}
	}
	if err := checkPins(b); err != nil {
		return err
	}
	if !b.Mode.Valid() {
		return refuse(reason.CapabilityUnknownMode, "mode", fmt.Sprintf("%q is none", b.Mode), "write observe, shadow, proposal or production")
	}
	if err := checkProposals(b); err != nil {
		return err
	}
	if err := checkReset(b); err != nil {
		return err
	}
	l := b.Environment.Limits
	for _, n := range []struct {
		field string
		value int64
	}{
		{"environment.limits.memory_bytes", l.MemoryBytes}, {"environment.limits.wall_ms", l.WallMillis},
		{"environment.limits.cpu_ms", l.CPUMillis}, {"environment.limits.processes", l.Processes},
		{"environment.limits.files", l.Files}, {"environment.limits.disk_bytes", l.DiskBytes},
		{"environment.limits.stdout_bytes", l.StdoutBytes},
		{"outputs.policy.max_count", int64(b.Outputs.Policy.MaxCount)}, {"outputs.policy.max_bytes", b.Outputs.Policy.MaxBytes},
		{"fence.generation", int64(b.Fence.Generation)}, {"reservation.expires_unix_ms", b.Reservation.ExpiresUnixMilli},
		{"lease_ms", b.LeaseMillis},
	} {
		if n.value <= 0 {
			return refuse(reason.BundleUnbounded, n.field, "is not bounded", "give it a positive number")
		}
	}
	if r := b.Environment.Retention; r.Keep && r.Days <= 0 {
		return refuse(reason.BundleUnbounded, "environment.retention.days", "is not bounded", "give it a positive number")
	}
	if err := checkCheckpoints(b); err != nil {
		return err
	}
	if b.Fence.Attempt != b.Attempt.ID {
		return refuse(reason.BundleDigestMismatch, "fence.attempt", "belongs to another attempt", "compile the bundle from its own reservation")
	}
	return nil
}

// checkReset refuses a reset policy that there is none of, and one that would empty what is
// to be kept.
func checkReset(b *Bundle) error {
	const field = "environment.reset_policy"
	switch b.Environment.Reset {
	case NoReset:
	case ResetBeforeDestroy:
		if b.Environment.Retention.Keep {
			return refuse(reason.EnvironmentUnsupported, field, "empties what environment.retention keeps", "leave one of them out")
		}
	default:
		return refuse(reason.EnvironmentUnsupported, field, fmt.Sprintf("is %q, which is none", b.Environment.Reset), "write "+NoReset+" or "+ResetBeforeDestroy)
	}
	return nil
}

// checkProposals refuses a bundle by which something would leave that its mode keeps in
// (C5, C11).
func checkProposals(b *Bundle) error {
	for i, p := range b.Proposals {
		field := fmt.Sprintf("proposals/%d", i)
		if i > 0 && b.Proposals[i-1].Purpose >= p.Purpose {
			return refuse(reason.OutboxProposalInvalid, field, "is not sorted by purpose, each once", "give each a purpose of its own")
		}
		if !p.Effector.OfOutbox() || b.Mode == capability.Observe || (b.Mode == capability.Shadow) != (p.Effector == operation.ShadowPublish) {
			return refuse(reason.OutboxNotAuthoritative, field, fmt.Sprintf("cannot leave by %q in mode %s", p.Effector, b.Mode), "leave it out, or ask for mode proposal")
		}
	}
	return nil
}

func checkPins(b *Bundle) error {
	pins := slices.Concat(b.Pins.Tools, b.Pins.Plugins, b.Pins.Skills, b.Pins.ToolSchemas)
	for _, p := range []*Pin{b.Pins.Tokenizer, b.Pins.Harness} {
		if p != nil {
			pins = append(pins, *p)
		}
	}
	for _, p := range pins {
		if p.Name == "" || p.Version == "" || !p.Digest.Valid() {
			return refuse(reason.BundleUnpinned, "pins", fmt.Sprintf("%q is not pinned by name, version and digest", p.Name), "pin it in the lock")
		}
	}
	if m := b.Pins.Model; m != nil && !m.Digest.Valid() && m.Unpinnable == "" {
		return refuse(reason.BundleUnpinned, "pins.model", "has no digest and is not marked unpinnable",
			"pin the model, or say in pins.model.unpinnable why that cannot be done")
	}
	if b.Execution.Tool != "" && !slices.ContainsFunc(b.Pins.Tools, func(p Pin) bool { return p.Name == b.Execution.Tool }) {
		return refuse(reason.BundleUnpinned, "execution.tool", fmt.Sprintf("%q is not among pins.tools", b.Execution.Tool), "pin the tool in the lock")
	}
	return nil
}

// checkSecrets walks every string of the bundle. It cannot prove that a string is no
// secret; it refuses the shapes in which secrets and provider locators are written
// (B10), so that a slip is caught before the bundle is signed into history.
func checkSecrets(b *Bundle, raw []byte) error {
	for _, ref := range slices.Concat(b.Environment.Credentials, b.Ceilings.Credentials) {
		if !credentialReference.MatchString(ref) {
			return refuse(reason.BundleSecretValue, "credential_references", "holds something that is not a reference",
				"write cred:NAME and let the broker resolve it")
		}
	}
	v, err := canonical.Parse(raw, canonical.DefaultLimits())
	if err != nil {
		return fmt.Errorf("attempt bundle of %s: %w", b.Attempt.ID, err)
	}
	if err := CheckSecrets("the attempt bundle", v); err != nil {
		return err
	}
	return walkStrings("", v, func(field, s string) error {
		if locator.MatchString(s) {
			return refuse(reason.BundleProviderLocator, field, "looks like a provider locator",
				"a bundle is portable: leave out where something lives on one host")
		}
		return nil
	})
}

// CheckSecrets refuses a document in which a string has the shape of a secret, before it
// is recorded anywhere. what names the document; the refusal names the field and never
// repeats the value, since refusals end up in logs.
func CheckSecrets(what string, v canonical.Value) error {
	return walkStrings("", v, func(field, s string) error {
		if canonical.Digest(s).Valid() {
			return nil
		}
		lower := strings.ToLower(s)
		for _, p := range secretShapes {
			if p.marked(lower) && p.shape.MatchString(s) {
				return reason.New(reason.BundleSecretValue, what+"'s "+field+" looks like "+p.what, field,
					"keep the value with the broker and name it as cred:NAME")
			}
		}
		return nil
	})
}

func walkStrings(path string, v canonical.Value, visit func(path, s string) error) error {
	switch v.Kind() {
	case canonical.KindString:
		return visit(path, v.Str())
	case canonical.KindArray:
		for i, item := range v.Items() {
			if err := walkStrings(fmt.Sprintf("%s[%d]", path, i), item, visit); err != nil {
				return err
			}
		}
	case canonical.KindObject:
		for _, m := range v.Members() {
			if err := walkStrings(strings.TrimPrefix(path+"."+m.Name, "."), m.Value, visit); err != nil {
				return err
			}
		}
	}
	return nil
}

//writ:immutable compiled patterns, never reassigned
var (
	credentialReference = regexp.MustCompile(`^cred:[a-z][a-z0-9-]{0,63}$`)
	locator             = regexp.MustCompile(`^(unix|unix-abstract|pid|pidfd|fd|docker|containerd|podman|ssh|vsock|file)://|^/proc/|^/(home|root|tmp|var|run|Users)/`)
)

// secretShape is one shape in which secrets are written.
type secretShape struct {
	what string
	// marks are what a match holds at least one of, in lower case: most strings hold none,
	// and looking for them costs far less than the pattern.
	marks []string
	shape *regexp.Regexp
}

func (p secretShape) marked(lower string) bool {
	return slices.ContainsFunc(p.marks, func(m string) bool { return strings.Contains(lower, m) })
}

//writ:immutable compiled patterns, never reassigned
var secretShapes = []secretShape{
	{"a private key", []string{"private key"}, regexp.MustCompile(`-----BEGIN [A-Z ]*PRIVATE KEY`)},
	{"an access key of a cloud", []string{"akia", "asia"}, regexp.MustCompile(`\b(AKIA|ASIA)[0-9A-Z]{16}\b`)},
	{"an API key", []string{"sk-", "rk-", "pk-"}, regexp.MustCompile(`\b(sk|rk|pk)-[A-Za-z0-9_-]{20,}`)},
	{"a token of a code host", []string{"gh", "glpat-"}, regexp.MustCompile(`\b(gh[pousr]_[A-Za-z0-9]{30,}|github_pat_[A-Za-z0-9_]{30,}|glpat-[A-Za-z0-9_-]{20,})`)},
	{"a token of a chat service", []string{"xox"}, regexp.MustCompile(`\bxox[abprs]-[A-Za-z0-9-]{10,}`)},
	{"a bearer token", []string{"bearer", "basic"}, regexp.MustCompile(`(?i)\b(bearer|basic)\s+[A-Za-z0-9._~+/-]{16,}=*`)},
	{"a signed web token", []string{"eyj"}, regexp.MustCompile(`\beyJ[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]{8,}\.`)},
	{"a password assignment", []string{"password", "passwd", "secret", "api", "token"}, regexp.MustCompile(`(?i)\b(password|passwd|secret|api[_-]?key|access[_-]?token)\s*[=:]\s*\S{6,}`)},
	{"a URL with a password", []string{"://"}, regexp.MustCompile(`[a-z][a-z0-9+.-]*://[^/\s:@]+:[^/\s:@]+@`)},
}

func refuse(code reason.Code, field, what, remedy string) error {
	return reason.New(code, "the attempt bundle's "+field+" "+what, field, remedy)
}

func notCanonical(b Bundle) error {
	return reason.New(reason.CanonicalNotCanonical, "the attempt bundle is not in its canonical form",
		string(b.Attempt.ID), "take the bytes from `writ artifacts get`, unchanged")
}
