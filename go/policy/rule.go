package policy

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/writ-runtime/writ/go/capability"
	"github.com/writ-runtime/writ/go/reason"
)

// Rule is one rule of a layer that can speak in an answer.
type Rule struct {
	Layer capability.Layer `json:"layer"`
	// ID is the stable id that the rule gives in its answers, LAYER.NAME.
	ID string `json:"rule"`
	// File begins with "policies/"; Line counts from 1.
	File string `json:"file"`
	Line int64  `json:"line"`
	// Title and Description come from the rule's METADATA.
	Title       string `json:"title"`
	Description string `json:"description,omitempty"`
}

// findRules returns every rule of the layer that carries an id, sorted by id. An id that stands twice, or that is
// not of the layer, and a rule without a title are refused: an explanation must lead to one place.
func findRules(l capability.Layer, modules []*ast.Module) ([]Rule, error) {
	form := regexp.MustCompile(`^` + string(l) + `\.[a-z][a-z0-9_]*$`)
	var rules []Rule
	for _, m := range modules {
		if m.Package.Path.String() == libPackage {
			continue
		}
		for _, r := range m.Rules {
			for _, id := range idsOf(r) {
				rule := Rule{Layer: l, ID: id, File: r.Location.File, Line: int64(r.Location.Row)}
				refuse := func(what, remedy string) error {
					return reason.New(reason.PolicyLoad, what, fmt.Sprintf("%s:%d", rule.File, rule.Line), remedy)
				}
				if !form.MatchString(id) {
					return nil, refuse(fmt.Sprintf("the rule id %q is not of the layer %s", id, l), fmt.Sprintf("write it as %s.name_of_the_rule", l))
				}
				if i := slices.IndexFunc(rules, func(o Rule) bool { return o.ID == id }); i >= 0 {
					return nil, refuse(fmt.Sprintf("the rule id %q stands at %s:%d already", id, rules[i].File, rules[i].Line), "give each rule an id of its own")
				}
				for _, a := range r.Annotations {
					if a.Scope == "rule" {
						rule.Title, rule.Description = a.Title, a.Description
					}
				}
				if rule.Title == "" {
					return nil, refuse(fmt.Sprintf("the rule %q has no title", id), "write a METADATA comment with a title above it")
				}
				rules = append(rules, rule)
			}
		}
	}
	slices.SortFunc(rules, func(a, b Rule) int { return strings.Compare(a.ID, b.ID) })
	return rules, nil
}

// idsOf returns the constant strings that the head of r gives under the key "rule".
func idsOf(r *ast.Rule) []string {
	var ids []string
	collect := func(t *ast.Term) {
		if t == nil {
			return
		}
		ast.WalkTerms(t, func(x *ast.Term) bool {
			object, ok := x.Value.(ast.Object)
			if !ok {
				return false
			}
			if id := object.Get(ast.StringTerm("rule")); id != nil {
				if s, ok := id.Value.(ast.String); ok {
					ids = append(ids, string(s))
				}
			}
			return false
		})
	}
	collect(r.Head.Key)
	collect(r.Head.Value)
	return ids
}
