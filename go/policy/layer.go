package policy

import (
	"context"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/rego"
	"github.com/open-policy-agent/opa/v1/storage/inmem"
	"github.com/writ-runtime/writ/go/canonical"
	"github.com/writ-runtime/writ/go/capability"
	"github.com/writ-runtime/writ/go/reason"
)

const libPackage = "data.writ.lib"

// layer is one compiled policy layer. It is immutable and may be evaluated by several callers at once.
type layer struct {
	name   capability.Layer
	digest canonical.Digest
	query  rego.PreparedEvalQuery
	rules  []Rule
}

// sources are the parts of Files that one layer is made of.
type sources struct {
	modules []*ast.Module
	bytes   map[string][]byte // of each module, by LAYER/BASE
	data    canonical.Value
}

func packageOf(l capability.Layer) string { return "data.writ." + string(l) }

// split parses the files and sorts them by layer. The lib belongs to every layer.
func split(files Files) (map[capability.Layer]*sources, error) {
	byLayer := map[capability.Layer]*sources{}
	for _, l := range capability.PolicyLayers() {
		empty, _ := canonical.NewObject(nil)
		byLayer[l] = &sources{bytes: map[string][]byte{}, data: empty}
	}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if strings.HasSuffix(name, ".json") {
			if err := splitData(byLayer, name, files[name]); err != nil {
				return nil, err
			}
			continue
		}
		module, err := ast.ParseModuleWithOpts(name, string(files[name]), ast.ParserOptions{RegoVersion: ast.RegoV1, ProcessAnnotation: true})
		if err != nil {
			return nil, compileError(err)
		}
		pkg := module.Package.Path.String()
		owners := []capability.Layer{capability.Layer(strings.TrimPrefix(pkg, "data.writ."))}
		if pkg == libPackage {
			owners = capability.PolicyLayers()
		}
		for _, l := range owners {
			s := byLayer[l]
			if s == nil {
				return nil, reason.New(reason.PolicyLoad, fmt.Sprintf("the package %s is no layer", strings.TrimPrefix(pkg, "data.")),
					fmt.Sprintf("%s:%d", name, module.Package.Location.Row), "write package writ.constitution, writ.role, writ.mode, writ.deployment or writ.lib")
			}
			// Named by package and not by folder, so that the same policies have the same digest wherever they lie.
			key := path.Base(strings.ReplaceAll(pkg, ".", "/")) + "/" + path.Base(name)
			if _, taken := s.bytes[key]; taken {
				return nil, badFile(name, "another file of the same package has the same name")
			}
			s.bytes[key] = files[name]
			s.modules = append(s.modules, module)
		}
	}
	return byLayer, nil
}

// splitData merges a data file at the root of data: its keys are names of layers.
func splitData(byLayer map[capability.Layer]*sources, name string, b []byte) error {
	value, err := canonical.Parse(b, canonical.Limits{})
	if err != nil {
		return fmt.Errorf("policy data %s: %w", name, err)
	}
	if value.Kind() != canonical.KindObject {
		return badFile(name, "it is no JSON object")
	}
	for _, m := range value.Members() {
		s := byLayer[capability.Layer(m.Name)]
		if s == nil {
			return badFile(name, fmt.Sprintf("its key %q is no layer", m.Name))
		}
		if len(s.data.Members()) > 0 {
			return badFile(name, fmt.Sprintf("another file holds the data of %s too", m.Name))
		}
		if m.Value.Kind() != canonical.KindObject {
			return badFile(name, fmt.Sprintf("its key %q holds no object", m.Name))
		}
		s.data = m.Value
	}
	return nil
}

func newLayer(ctx context.Context, name capability.Layer, s *sources) (*layer, error) {
	compiler := ast.NewCompiler().WithCapabilities(Capabilities()).WithStrict(true).
		WithStageAfterID(ast.StageRewriteLocalVars, ast.CompilerStageDefinition{Name: "WritLint", MetricName: "writ_lint", Stage: newLint().stage})
	modules := map[string]*ast.Module{}
	for _, m := range s.modules {
		modules[m.Package.Location.File] = m.Copy()
	}
	compiler.Compile(modules)
	if compiler.Failed() {
		return nil, compileError(compiler.Errors)
	}
	entrypoint := packageOf(name) + ".decision"
	ref, err := ast.ParseRef(entrypoint)
	if err != nil {
		return nil, compileError(err)
	}
	if len(compiler.GetRulesExact(ref)) == 0 {
		return nil, reason.New(reason.PolicyLoad, "the layer "+string(name)+" has no rule "+strings.TrimPrefix(entrypoint, "data."),
			root+string(name), "write decision := {\"allow\": allow, \"deny\": deny}")
	}
	rules, err := findRules(name, s.modules)
	if err != nil {
		return nil, err
	}
	digest, err := s.digest(name)
	if err != nil {
		return nil, err
	}
	query, err := rego.New(
		rego.Query(entrypoint),
		rego.Compiler(compiler),
		rego.Store(inmem.NewFromObject(map[string]any{string(name): s.data.Any()})),
		rego.StrictBuiltinErrors(true),
	).PrepareForEval(ctx)
	if err != nil {
		return nil, compileError(err)
	}
	return &layer{name: name, digest: digest, query: query, rules: rules}, nil
}

// fileDigest is one line of what a layer's digest is taken over.
type fileDigest struct {
	Path   string           `json:"path"`
	Digest canonical.Digest `json:"digest"`
}

func (s *sources) digest(name capability.Layer) (canonical.Digest, error) {
	var list []fileDigest
	for _, key := range slices.Sorted(maps.Keys(s.bytes)) {
		list = append(list, fileDigest{Path: key, Digest: canonical.Sum(s.bytes[key])})
	}
	list = append(list, fileDigest{Path: "data/" + string(name), Digest: canonical.Sum(s.data.AppendCanonical(nil))})
	digest, err := canonical.DigestOf(list)
	if err != nil {
		return "", fmt.Errorf("digest of policy layer %s: %w", name, err)
	}
	return digest, nil
}

func (l *layer) rule(id string) (Rule, bool) {
	i, ok := slices.BinarySearchFunc(l.rules, id, func(r Rule, id string) int { return strings.Compare(r.ID, id) })
	if !ok {
		return Rule{}, false
	}
	return l.rules[i], true
}
