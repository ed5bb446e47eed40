package outbox

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/writ-runtime/writ/go/attemptbundle"
	"github.com/writ-runtime/writ/go/canonical"
	"github.com/writ-runtime/writ/go/capability"
	"github.com/writ-runtime/writ/go/lifecycle"
	"github.com/writ-runtime/writ/go/operation"
	"github.com/writ-runtime/writ/go/protocol"
	"github.com/writ-runtime/writ/go/reason"
	"github.com/writ-runtime/writ/go/workorder"
)

// ProposalKind is the registered kind of a Proposal.
const ProposalKind = "writ.effect_proposal.v1"

// Bounds of a proposal.
const (
	// MaxBytes bounds the sum of the sizes of its files.
	MaxBytes = 256 << 20
	// MaxTitle and MaxMessage bound its words, in bytes.
	MaxTitle   = 200
	MaxMessage = 16 << 10
)

// Proposal is one effect that is to leave after its attempt's result was accepted. It
// names where to by the deployment's name for it, never by a place of this machine, and
// what by digest. Its canonical JSON is its only form.
type Proposal struct {
	Kind    string              `json:"kind"`
	Attempt workorder.AttemptID `json:"attempt"`
	// Purpose tells the proposals of an attempt apart: 1 to 63 of a-z, 0-9, '_' and '-'.
	Purpose string `json:"purpose"`
	// Effector is the kind of operation that carries it out.
	Effector operation.Kind `json:"effector"`
	// Destination is folder:NAME, for a branch repo:NAME, and none in the shadow namespace.
	Destination capability.Scope `json:"destination"`
	// Repository is the one that a review packet shows the changes of, if any.
	Repository capability.Scope `json:"repository,omitzero"`
	// Base is the commit that the changes are made on. Without one a branch begins with a
	// commit of its own.
	Base string `json:"base,omitempty"`
	// Result and Manifest are the accepted result and what was frozen for it.
	Result   canonical.Digest `json:"result"`
	Manifest canonical.Digest `json:"manifest"`
	// Files are entries of the manifest, sorted by path.
	Files []File `json:"files"`
	// Receipts are those that the result rests on, sorted by name.
	Receipts []lifecycle.Guard `json:"receipts"`
	Title    string            `json:"title"`
	Message  string            `json:"message"`
	// Observed is the recorded reading that stands as the effect's date.
	Observed lifecycle.Observation `json:"observed"`
}

// File is one file that leaves.
type File struct {
	Path       string           `json:"path"`
	Digest     canonical.Digest `json:"digest"`
	Size       int64            `json:"size"`
	Executable bool             `json:"executable"`
}

// ParseProposal reads the canonical JSON of a proposal. It refuses, with
// outbox.proposal_invalid, one that contradicts itself; whatever is not canonical, of
// another kind or with an unknown field is refused as canonical.Decode refuses it.
func ParseProposal(b []byte) (Proposal, error) {
	var p Proposal
	if err := canonical.Decode(b, &p); err != nil {
		return Proposal{}, err
	}
	if err := p.Check(); err != nil {
		return Proposal{}, err
	}
	again, err := canonical.Marshal(p)
	if err != nil {
		return Proposal{}, err
	}
	if string(again) != string(b) {
		return Proposal{}, invalid("it is not written in canonical form", "", "write it as canonical JSON")
	}
	return p, nil
}

func invalid(what, where, remedy string) *reason.Refusal {
	return reason.New(reason.OutboxProposalInvalid, "an effect proposal cannot be carried out: "+what, where, remedy)
}

// Check refuses a proposal that contradicts itself.
func (p Proposal) Check() error {
	const fault = "this is a fault of whoever made the proposal: report it"
	if p.Kind != ProposalKind {
		return invalid(fmt.Sprintf("its kind is %q", p.Kind), "kind", "write "+ProposalKind)
	}
	if _, err := canonical.ParseID(workorder.AttemptIDPrefix, string(p.Attempt)); err != nil {
		return invalid("its attempt has no id", "attempt", fault)
	}
	if !plainPurpose(p.Purpose) {
		return invalid("its purpose is no plain name", "purpose", "use 1 to 63 of a-z, 0-9, '_' and '-', and begin with a letter or digit")
	}
	if !p.Result.Valid() || !p.Manifest.Valid() {
		return invalid("it names no result or no manifest", "result", fault)
	}
	if p.Observed.Domain == "" || len(p.Observed.Domain) > 64 || p.Observed.UnixMilli < 0 {
		return invalid("it has no recorded date", "observed", fault)
	}
	for _, check := range []func() error{p.checkWhere, p.checkFiles, p.checkReceipts, p.checkWords} {
		if err := check(); err != nil {
			return err
		}
	}
	return p.checkSecrets()
}

// checkWhere holds the destination against the effector.
func (p Proposal) checkWhere() error {
	if p.Base != "" && !objectName(p.Base) {
		return invalid("its base is no commit id", "base", "write the whole id, 40 hexadecimal digits in lower case")
	}
	want := capability.FolderScope
	switch p.Effector {
	case operation.Publish, operation.ReviewPacket:
	case operation.Branch:
		want = capability.RepoScope
	case operation.ShadowPublish:
		want = capability.NoScope
	default:
		return invalid(fmt.Sprintf("nothing of the outbox carries out %q", p.Effector), "effector", "write publish, branch or review_packet")
	}
	if p.Destination.Kind() != want || want != capability.NoScope && nameOf(p.Destination) == "" {
		return invalid(fmt.Sprintf("%s does not lead to %s", p.Effector, p.Destination), "destination", "write "+string(want)+":NAME, with a name of the deployment's")
	}
	shows := !p.Repository.IsZero()
	switch {
	case shows && p.Effector != operation.ReviewPacket:
		return invalid("only a review packet shows the changes of a repository", "repository", "leave it out")
	case shows && (p.Repository.Kind() != capability.RepoScope || nameOf(p.Repository) == ""):
		return invalid("its repository is none", "repository", "write repo:NAME, with a name of the deployment's")
	case shows != (p.Base != "") && p.Effector != operation.Branch:
		return invalid("changes are shown of a repository and against a commit, or not at all", "base", "name both or neither")
	}
	return nil
}

func (p Proposal) checkFiles() error {
	if len(p.Files) == 0 || len(p.Files) > protocol.MaxOutputs {
		return invalid(fmt.Sprintf("it names %d files", len(p.Files)), "files", fmt.Sprintf("name 1 to %d", protocol.MaxOutputs))
	}
	var total int64
	folders := map[string]bool{}
	for i, f := range p.Files {
		where := fmt.Sprintf("files/%d", i)
		if err := protocol.CheckPath(f.Path); err != nil {
			return invalid(err.What, where, err.Remedy)
		}
		if i > 0 && p.Files[i-1].Path >= f.Path {
			return invalid("its files are not sorted by path, each once", where, "sort them by the bytes of their paths")
		}
		if !f.Digest.Valid() || f.Size < 0 || f.Size > MaxBytes-total {
			return invalid("a file has no digest, or the files more bytes than may leave at once", where, fmt.Sprintf("name files of at most %d bytes together", MaxBytes))
		}
		total += f.Size
		for at := strings.LastIndexByte(f.Path, '/'); at > 0; at = strings.LastIndexByte(f.Path[:at], '/') {
			folders[f.Path[:at]] = true
		}
	}
	for i, f := range p.Files {
		if folders[f.Path] {
			return invalid("a file has the path of a folder of others", fmt.Sprintf("files/%d", i), "rename one of them")
		}
	}
	return nil
}

func (p Proposal) checkReceipts() error {
	if len(p.Receipts) > 64 {
		return invalid("it names more than 64 receipts", "receipts", "name those that the result rests on")
	}
	for i, r := range p.Receipts {
		where := fmt.Sprintf("receipts/%d", i)
		if !plainReceipt(r.Name) || !r.Digest.Valid() {
			return invalid("a receipt has no name or no digest", where, "name receipts as the transition registry does")
		}
		if i > 0 && p.Receipts[i-1].Name >= r.Name {
			return invalid("its receipts are not sorted by name, each once", where, "sort them by name")
		}
	}
	return nil
}

// checkWords keeps out what would show a reader something else than stands there.
func (p Proposal) checkWords() error {
	if p.Title == "" || len(p.Title) > MaxTitle || !visible(p.Title, "") || strings.TrimSpace(p.Title) != p.Title {
		return invalid("its title is not one plain line", "title", fmt.Sprintf("write one line of at most %d bytes", MaxTitle))
	}
	if len(p.Message) > MaxMessage || !visible(p.Message, "\n\t") {
		return invalid("its message is too long or holds characters that cannot be seen", "message", fmt.Sprintf("write plain text of at most %d bytes", MaxMessage))
	}
	for line := range strings.Lines(p.Message) {
		if strings.HasPrefix(strings.ToLower(strings.TrimSpace(line)), "writ-") {
			return invalid("a line of its message reads as if Writ had written it", "message", "begin the line otherwise than with Writ-")
		}
	}
	return nil
}

func (p Proposal) checkSecrets() error {
	raw, err := canonical.Marshal(p)
	if err != nil {
		return invalid(err.Error(), "", "write plain UTF-8")
	}
	v, err := canonical.Parse(raw, canonical.DefaultLimits())
	if err != nil {
		return err
	}
	return attemptbundle.CheckSecrets("the effect proposal", v)
}

// Digest is the proposal's identity.
func (p Proposal) Digest() (canonical.Digest, error) { return canonical.DigestOf(p) }

// Name is the name of the folder that the proposal makes.
func (p Proposal) Name() string { return string(p.Attempt) + "." + p.Purpose }

// BranchName is the name of the branch that the proposal makes, below refs/heads/.
func (p Proposal) BranchName() string { return "writ/" + string(p.Attempt) + "/" + p.Purpose }

// Bytes is the sum of the sizes of its files.
func (p Proposal) Bytes() int64 {
	var n int64
	for _, f := range p.Files {
		n += f.Size
	}
	return n
}

// Uses are the grants that the proposal needs: for what leaves, and for where it goes.
func (p Proposal) Uses() ([]capability.Grant, error) {
	var uses []capability.Grant
	outputs := func(action string, destination capability.Scope) error {
		for _, f := range p.Files {
			s, err := capability.ParseScope(string(capability.OutputScope) + ":" + f.Path)
			if err != nil {
				return err
			}
			uses = append(uses, capability.Grant{Action: action, Resource: s, Destination: destination})
		}
		return nil
	}
	switch p.Effector {
	case operation.Publish:
		return uses, outputs("outbox.publish", p.Destination)
	case operation.ShadowPublish:
		err := outputs("artifact.write", capability.Scope{})
		return uses, err
	}
	if err := outputs("artifact.propose", capability.Scope{}); err != nil {
		return nil, err
	}
	switch {
	case p.Effector == operation.Branch:
		b, err := capability.ParseScope(string(capability.BranchScope) + ":" + p.BranchName())
		if err != nil {
			return nil, err
		}
		uses = append(uses, capability.Grant{Action: "repo.branch", Resource: p.Destination, Destination: b})
	case !p.Repository.IsZero():
		uses = append(uses, capability.Grant{Action: "repo.review_packet", Resource: p.Repository, Destination: p.Destination})
	}
	return uses, nil
}

// nameOf returns the deployment's name in a scope, or "" where it is no single one.
func nameOf(s capability.Scope) string {
	_, name, _ := strings.Cut(s.String(), ":")
	if !plainName(name) {
		return ""
	}
	return name
}

func plainPurpose(s string) bool {
	return s != "" && len(s) <= 63 && s[0] != '-' && s[0] != '_' && !strings.ContainsFunc(s, func(r rune) bool {
		return !('a' <= r && r <= 'z' || '0' <= r && r <= '9' || r == '-' || r == '_')
	})
}

func plainName(s string) bool {
	return s != "" && len(s) <= 64 && !slices.Contains([]byte("._-"), s[0]) && !strings.ContainsFunc(s, func(r rune) bool {
		return !('a' <= r && r <= 'z' || '0' <= r && r <= '9' || r == '-' || r == '_' || r == '.')
	})
}

func plainReceipt(s string) bool {
	return s != "" && len(s) <= 64 && 'A' <= s[0] && s[0] <= 'Z' && !strings.ContainsFunc(s, func(r rune) bool {
		return !('a' <= r && r <= 'z' || 'A' <= r && r <= 'Z')
	})
}

// objectName reports whether s is a whole name of one of git's objects.
func objectName(s string) bool {
	return len(s) == 40 && !strings.ContainsFunc(s, func(r rune) bool { return !('a' <= r && r <= 'f' || '0' <= r && r <= '9') })
}

// visible reports whether every character of s shows as what it is, or is one of the
// others that are named.
func visible(s, others string) bool {
	if !utf8.ValidString(s) {
		return false
	}
	return !strings.ContainsFunc(s, func(r rune) bool {
		return unicode.In(r, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp) && !strings.ContainsRune(others, r)
	})
}
