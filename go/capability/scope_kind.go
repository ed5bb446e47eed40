package capability

// ScopeKind is the type of thing that a scope covers.
type ScopeKind string

// The kinds of scope.
const (
	// NoScope is the kind of "none", the scope of an action that has nothing to limit.
	NoScope ScopeKind = "none"
	// InputScope covers paths of materialized inputs; the first segment is the input's name.
	InputScope ScopeKind = "input"
	// OutputScope covers paths of declared outputs.
	OutputScope ScopeKind = "output"
	// ToolScope covers tools by their name in the lock.
	ToolScope ScopeKind = "tool"
	// HostScope covers network destinations, NAME:PORT.
	HostScope ScopeKind = "host"
	// ModelScope covers models, PROVIDER/NAME.
	ModelScope ScopeKind = "model"
	// RepoScope covers repositories, by path.
	RepoScope ScopeKind = "repo"
	// BranchScope covers branches of a repository, by name.
	BranchScope ScopeKind = "branch"
	// FolderScope covers folders of the deployment that something may be put into, by name.
	FolderScope ScopeKind = "folder"
	// CredentialScope covers credential references by name.
	CredentialScope ScopeKind = "credential"
)

// shape is how the body of a scope is written and compared.
type shape uint8

const (
	shapeUnknown shape = iota
	shapeNone
	shapePath
	shapeName
	shapeHost
)

func (k ScopeKind) shape() shape {
	switch k {
	case NoScope:
		return shapeNone
	case InputScope, OutputScope, ModelScope, RepoScope, BranchScope:
		return shapePath
	case ToolScope, FolderScope, CredentialScope:
		return shapeName
	case HostScope:
		return shapeHost
	}
	return shapeUnknown
}

// Valid reports whether k is a kind of scope.
func (k ScopeKind) Valid() bool { return k.shape() != shapeUnknown }
