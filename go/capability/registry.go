package capability

import (
	"fmt"
	"slices"
	"strings"

	"github.com/writ-runtime/writ/go/canonical"
	"github.com/writ-runtime/writ/go/reason"
)

// RegistryKind is the kind of the document that registers the actions.
const RegistryKind = "writ.actions.v1"

// Registry holds the registered actions. It is immutable. An action that it does not hold cannot be granted.
type Registry struct {
	actions []Action
	digest  canonical.Digest
}

// registryDocument is the shape of schemas/actions.v1.json.
type registryDocument struct {
	Kind    string   `json:"kind"`
	Actions []Action `json:"actions"`
}

// ParseRegistry reads the bytes of schemas/actions.v1.json. It refuses an action that stands twice or has a scope
// or mode that does not exist.
func ParseRegistry(b []byte) (*Registry, error) {
	var doc registryDocument
	if err := canonical.Decode(b, &doc); err != nil {
		return nil, fmt.Errorf("registry of actions: %w", err)
	}
	if doc.Kind != RegistryKind {
		return nil, reason.New(reason.CapabilityRegistry, "the registry of actions has the kind "+quoted(doc.Kind), "", "")
	}
	seen := map[string]bool{}
	for _, a := range doc.Actions {
		wrong := ""
		switch {
		case !plainName(a.Name) || !strings.Contains(a.Name, "."):
			wrong = "its name is not dotted lower-case words"
		case seen[a.Name]:
			wrong = "it stands twice"
		case !a.Resource.Valid() || !a.Destination.Valid():
			wrong = "its scope is of a kind that does not exist"
		case !a.MinimumMode.Valid():
			wrong = "its minimum mode does not exist"
		case a.Summary == "":
			wrong = "it has no summary"
		}
		if wrong != "" {
			return nil, reason.New(reason.CapabilityRegistry, "the action "+quoted(a.Name)+" is registered wrongly: "+wrong, "", "")
		}
		seen[a.Name] = true
	}
	canon, err := canonical.Canonicalize(b)
	if err != nil {
		return nil, fmt.Errorf("registry of actions: %w", err)
	}
	slices.SortFunc(doc.Actions, func(a, b Action) int { return strings.Compare(a.Name, b.Name) })
	return &Registry{actions: doc.Actions, digest: canonical.Sum(canon)}, nil
}

// Digest covers the canonical bytes of the registry's document.
func (r *Registry) Digest() canonical.Digest { return r.digest }

// Actions returns every registered action, sorted by name.
func (r *Registry) Actions() []Action { return slices.Clone(r.actions) }

// Action returns the action of that name.
func (r *Registry) Action(name string) (Action, bool) {
	i, ok := slices.BinarySearchFunc(r.actions, name, func(a Action, name string) int { return strings.Compare(a.Name, name) })
	if !ok {
		return Action{}, false
	}
	return r.actions[i], true
}

// ParseGrant makes a grant of an action from text. An empty resource is "none" for an action without one. The
// error is a Refusal with the code of ParseScope or of Check.
func (r *Registry) ParseGrant(action, resource, destination string) (Grant, error) {
	g := Grant{Action: action}
	if a, ok := r.Action(action); ok && a.Resource == NoScope && resource == "" {
		resource = string(NoScope)
	}
	var err error
	if g.Resource, err = ParseScope(resource); err != nil {
		return Grant{}, err
	}
	if destination != "" && destination != string(NoScope) {
		if g.Destination, err = ParseScope(destination); err != nil {
			return Grant{}, err
		}
	}
	if err := r.Check(g); err != nil {
		return Grant{}, err
	}
	return g, nil
}

// Check refuses a grant of an unregistered action (capability.unknown_action), and one whose scopes or limits are
// not those that the action has (capability.malformed_grant).
func (r *Registry) Check(g Grant) error {
	a, ok := r.Action(g.Action)
	if !ok {
		return reason.New(reason.CapabilityUnknownAction, "no action is called "+quoted(g.Action), "",
			"ask for one of: "+strings.Join(r.names(), ", "))
	}
	if kind := g.Resource.Kind(); kind != a.Resource {
		return reason.New(reason.CapabilityMalformedGrant,
			fmt.Sprintf("%s acts on a scope of kind %s, not on %s", a.Name, a.Resource, quoted(g.Resource.String())), "",
			"write the resource as "+example(a.Resource))
	}
	switch kind := g.Destination.Kind(); {
	case a.Destination == NoScope && !g.Destination.IsZero():
		return reason.New(reason.CapabilityMalformedGrant, a.Name+" has no destination", "", "leave the destination out")
	case a.Destination != NoScope && kind != a.Destination:
		return reason.New(reason.CapabilityMalformedGrant,
			fmt.Sprintf("%s needs a destination of kind %s, not %s", a.Name, a.Destination, quoted(g.Destination.String())), "",
			"write the destination as "+example(a.Destination))
	}
	if !g.Limits.valid() {
		return reason.New(reason.CapabilityMalformedGrant, "a limit of "+a.Name+" is negative", "", "write a limit above zero, or none")
	}
	return nil
}

// WithinMode reports whether the mode permits the grant's action. It is false for an unregistered action and for
// one that only people carry out.
func (r *Registry) WithinMode(g Grant, m Mode) bool {
	a, ok := r.Action(g.Action)
	return ok && !a.HumanOnly && m.Ceiling().Permits(a.Effect())
}

func (r *Registry) names() []string {
	names := make([]string, len(r.actions))
	for i, a := range r.actions {
		names[i] = a.Name
	}
	return names
}

func example(k ScopeKind) string {
	switch k {
	case InputScope:
		return "input:docs/**"
	case OutputScope:
		return "output:report.json"
	case ToolScope:
		return "tool:textstat"
	case HostScope:
		return "host:api.example.com:443"
	case ModelScope:
		return "model:provider/name"
	case RepoScope:
		return "repo:owner/name"
	case BranchScope:
		return "branch:writ/topic"
	case FolderScope:
		return "folder:releases"
	case CredentialScope:
		return "credential:name"
	default:
		return string(NoScope)
	}
}
