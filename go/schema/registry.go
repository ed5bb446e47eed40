package schema

import (
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"sync"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/writ-runtime/writ/go/canonical"
	"github.com/writ-runtime/writ/go/reason"
	"github.com/writ-runtime/writ/schemas"
)

// base is where schemas live for references between them: "common.v1.schema.json#/$defs/digest" works, and
// nothing answers to the scheme.
const base = "writ:///schemas/"

// Registry holds the registered kinds with their schemas. It is safe for concurrent use; a schema is read and
// compiled when it is first needed.
type Registry struct {
	files fs.FS
	kinds []string
	// entries is by kind; the kinds of shared files, which no document has, are their file names.
	entries map[string]*entry
}

type entry struct {
	kind, file string

	read   sync.Once
	value  canonical.Value
	digest canonical.Digest
	rerr   error

	compile  sync.Once
	compiled *jsonschema.Schema
	cerr     error
}

// index is the shape of registry.json.
type index struct {
	Kind    string `json:"kind"`
	Schemas []struct {
		Kind string `json:"kind"`
		File string `json:"file"`
	} `json:"schemas"`
	// Shared lists files that others refer to and that belong to no kind.
	Shared []string `json:"shared,omitempty"`
}

// Open returns the registry that is built into the program. An error has code schema.registry.
func Open() (*Registry, error) { return OpenFS(schemas.FS) }

// OpenFS returns the registry in another file system with registry.json at its root.
func OpenFS(files fs.FS) (*Registry, error) {
	b, err := fs.ReadFile(files, "registry.json")
	if err != nil {
		return nil, broken("registry.json", "cannot be read").Because(err)
	}
	var idx index
	if err := canonical.Decode(b, &idx); err != nil {
		return nil, broken("registry.json", "cannot be understood").Because(err)
	}
	r := &Registry{files: files, entries: map[string]*entry{}}
	for _, s := range idx.Schemas {
		if err := r.add(s.Kind, s.File); err != nil {
			return nil, err
		}
		r.kinds = append(r.kinds, s.Kind)
	}
	for _, file := range idx.Shared {
		if err := r.add(file, file); err != nil {
			return nil, err
		}
	}
	slices.Sort(r.kinds)
	return r, nil
}

func (r *Registry) add(kind, file string) error {
	if kind == "" || r.entries[kind] != nil {
		return broken(file, fmt.Sprintf("kind %q is empty or registered twice", kind))
	}
	if _, err := fs.Stat(r.files, file); err != nil {
		return broken(file, "is registered but missing").Because(err)
	}
	r.entries[kind] = &entry{kind: kind, file: file}
	return nil
}

func broken(file, what string) *reason.Refusal {
	return reason.New(reason.SchemaRegistry, "the built-in schema registry is broken: "+file+" "+what, "", "report this as a fault of Writ")
}

// Kinds returns the registered kinds, sorted.
func (r *Registry) Kinds() []string { return slices.Clone(r.kinds) }

// Digest returns the digest of a kind's schema, taken over its canonical bytes. An error has code
// schema.unknown_kind or schema.registry.
func (r *Registry) Digest(kind string) (canonical.Digest, error) {
	e, err := r.lookup(kind)
	if err != nil {
		return "", err
	}
	if err := r.load(e); err != nil {
		return "", err
	}
	return e.digest, nil
}

func (r *Registry) lookup(kind string) (*entry, error) {
	if e := r.entries[kind]; e != nil && slices.Contains(r.kinds, kind) {
		return e, nil
	}
	return nil, reason.New(reason.SchemaUnknownKind, fmt.Sprintf("kind %s is not registered", canonical.QuoteShort(kind)), "", suggestKind(kind, r.kinds))
}

// suggestKind names the one of the wanted kinds that was probably meant: another version of the same family, or a near
// spelling.
func suggestKind(kind string, wanted []string) string {
	if cut := strings.LastIndex(kind, ".v"); cut > 0 {
		for _, k := range wanted {
			if strings.HasPrefix(k, kind[:cut]+".v") {
				return "this build knows " + k
			}
		}
	}
	if near := nearest(kind, wanted); near != "" {
		return "did you mean " + near + "?"
	}
	return "write one of " + strings.Join(wanted, ", ")
}

func (r *Registry) load(e *entry) error {
	e.read.Do(func() {
		b, err := fs.ReadFile(r.files, e.file)
		if err != nil {
			e.rerr = broken(e.file, "cannot be read").Because(err)
			return
		}
		if e.value, err = canonical.Parse(b, canonical.Limits{}); err != nil {
			e.rerr = broken(e.file, "is not strict JSON").Because(err)
			return
		}
		e.digest = canonical.Sum(e.value.AppendCanonical(nil))
	})
	return e.rerr
}

// schemaOf returns the compiled schema of an entry.
func (r *Registry) schemaOf(e *entry) (*jsonschema.Schema, error) {
	e.compile.Do(func() {
		c := newCompiler(r)
		var err error
		if e.compiled, err = c.Compile(base + e.file); err != nil {
			e.cerr = broken(e.file, "does not compile").Because(err)
		}
	})
	return e.compiled, e.cerr
}

// newCompiler returns a compiler that knows the files of a registry, and none without one.
func newCompiler(r *Registry) *jsonschema.Compiler {
	c := jsonschema.NewCompiler()
	c.DefaultDraft(jsonschema.Draft2020)
	c.AssertFormat()
	c.UseLoader(closedLoader{r})
	return c
}

// closedLoader reads the files of a registry when they are first referred to, and refuses every other reference; the
// meta-schemas are built into jsonschema and do not come through here.
type closedLoader struct{ registry *Registry }

func (l closedLoader) Load(url string) (any, error) {
	if e := l.registry.entryAt(url); e != nil {
		if err := l.registry.load(e); err != nil {
			return nil, err
		}
		return e.value.Any(), nil
	}
	return nil, reason.New(reason.SchemaRemoteReference, fmt.Sprintf("the schema refers to %s", canonical.QuoteShort(url)), "", "put what it refers to under $defs")
}

// node returns the part of a schema that a location such as "writ:///schemas/x.json#/properties/a" names.
func (r *Registry) node(location string) (canonical.Value, bool) {
	url, fragment, _ := strings.Cut(location, "#")
	if e := r.entryAt(url); e != nil && r.load(e) == nil {
		return descend(e.value, fragment)
	}
	return canonical.Value{}, false
}

// entryAt returns the entry whose file lives at a URL, or nil.
func (r *Registry) entryAt(url string) *entry {
	if r == nil {
		return nil
	}
	for _, e := range r.entries {
		if base+e.file == url {
			return e
		}
	}
	return nil
}

// Validate checks a value against the schema of a kind. src gives positions.
func (r *Registry) validate(e *entry, v canonical.Value, src *source) error {
	compiled, err := r.schemaOf(e)
	if err != nil {
		return err
	}
	if problems := violations(compiled, v, src, r.node, codes{reason.SchemaViolation, reason.SchemaUnknownField}); len(problems) > 0 {
		return newInvalid(problems)
	}
	return nil
}

// ValidateCanonical checks bytes, which must be strict JSON in canonical form, against the schema of a kind. The
// error is an *InvalidError, or a Refusal for an unknown kind.
func (r *Registry) ValidateCanonical(kind string, b []byte) error {
	e, err := r.lookup(kind)
	if err != nil {
		return err
	}
	src := newSource(kind, b)
	v, err := parseJSON(src, canonical.Limits{}, "")
	if err != nil {
		return err
	}
	if string(v.AppendCanonical(make([]byte, 0, len(b)))) != string(b) {
		return newInvalid([]Problem{src.problem(0, "", "canonical", "the bytes are not in canonical form", "", reason.CanonicalNotCanonical)})
	}
	return r.validate(e, v, src)
}
