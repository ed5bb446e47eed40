package policy

import (
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"
)

// Capabilities returns the part of Rego that policies may use: every built-in function of this OPA that is
// deterministic, reaches nothing outside and makes only integers.
func Capabilities() *ast.Capabilities {
	c := ast.CapabilitiesForThisVersion()
	var kept []*ast.Builtin
	for _, b := range c.Builtins {
		if forbiddenBuiltin(b) == "" {
			kept = append(kept, b)
		}
	}
	c.Builtins = kept
	// Empty and not nil: nil would allow every host for remote schemas.
	c.AllowNet = []string{}
	return c
}

// forbiddenBuiltin returns why policies may not call the function, or "".
func forbiddenBuiltin(b *ast.Builtin) string {
	if b.IsNondeterministic() {
		return "it may answer differently for the same input"
	}
	switch b.Name {
	case "div", "round", "ceil", "floor", "to_number", "json.unmarshal", "yaml.unmarshal", "units.parse", "units.parse_bytes":
		return "it can make a number that is no integer, and such numbers differ between evaluators"
	case "print", "internal.print", "trace":
		return "it writes instead of deciding"
	case "internal.test_case", "rego.parse_module", "strings.render_template":
		return "policies have no use for it"
	}
	for prefix, why := range map[string]string{
		"http.":                     "it reaches the network",
		"net.lookup":                "it reaches the network",
		"time.":                     "time enters only as a recorded fact of the input",
		"rand.":                     "it may answer differently for the same input",
		"uuid.":                     "it may answer differently for the same input",
		"opa.":                      "it reads the host",
		"io.jwt.":                   "it depends on the clock or on randomness",
		"crypto.x509.":              "it depends on the clock",
		"crypto.parse_private_keys": "policies hold no keys",
		"providers.":                "it signs requests to others",
		"graphql.":                  "policies have no use for it",
	} {
		if strings.HasPrefix(b.Name, prefix) {
			return why
		}
	}
	return ""
}
