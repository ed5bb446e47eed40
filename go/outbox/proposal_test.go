package outbox_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/writ-runtime/writ/go/canonical"
	"github.com/writ-runtime/writ/go/capability"
	"github.com/writ-runtime/writ/go/lifecycle"
	"github.com/writ-runtime/writ/go/operation"
	"github.com/writ-runtime/writ/go/outbox"
	"github.com/writ-runtime/writ/go/reason"
	"github.com/writ-runtime/writ/go/schema"
	"github.com/writ-runtime/writ/testing/fixture"
)

// good is a proposal without a world.
func good(t testing.TB) outbox.Proposal {
	t.Helper()
	return outbox.Proposal{
		Kind: outbox.ProposalKind, Attempt: fixture.Attempt, Purpose: "first", Effector: operation.ReviewPacket,
		Destination: scope(t, "folder:reviews"), Repository: scope(t, "repo:project"), Base: strings.Repeat("a1", 20),
		Result: fixture.Digest("result"), Manifest: fixture.Digest("manifest"),
		Files:    []outbox.File{{Path: "a/b.md", Digest: fixture.Digest("b"), Size: 3}, {Path: "a/c", Digest: fixture.Digest("c"), Size: 0, Executable: true}},
		Receipts: []lifecycle.Guard{{Name: "CollectionReceipt", Digest: fixture.Digest("r")}},
		Title:    "A title", Message: "Some words.\n\tMore.\n", Observed: lifecycle.Observation{Domain: "fixture", UnixMilli: fixture.Now},
	}
}

// What a proposal says is read back as it was, and matches its schema.
func TestParseProposal(t *testing.T) {
	registry, err := schema.Open()
	fatal(t, err)
	for name, change := range map[string]func(*outbox.Proposal){
		"packet":               func(*outbox.Proposal) {},
		"without a repository": func(p *outbox.Proposal) { p.Repository, p.Base = capability.Scope{}, "" },
		"publication":          func(p *outbox.Proposal) { p.Effector, p.Repository, p.Base = operation.Publish, capability.Scope{}, "" },
		"branch": func(p *outbox.Proposal) {
			p.Effector, p.Destination, p.Repository = operation.Branch, p.Repository, capability.Scope{}
		},
		"branch without a base": func(p *outbox.Proposal) {
			p.Effector, p.Destination, p.Repository, p.Base = operation.Branch, p.Repository, capability.Scope{}, ""
		},
		"shadow": func(p *outbox.Proposal) {
			p.Effector, p.Destination, p.Repository, p.Base = operation.ShadowPublish, scope(t, "none"), capability.Scope{}, ""
		},
		"few words": func(p *outbox.Proposal) { p.Message, p.Receipts = "", nil },
	} {
		p := good(t)
		change(&p)
		raw, err := canonical.Marshal(p)
		fatal(t, err)
		back, err := outbox.ParseProposal(raw)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		again, err := canonical.Marshal(back)
		if err != nil || string(again) != string(raw) {
			t.Errorf("%s: %v\n%s\n%s", name, err, raw, again)
		}
		if err := registry.ValidateCanonical(outbox.ProposalKind, raw); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestParseProposalRefuses(t *testing.T) {
	long := strings.Repeat("x", outbox.MaxTitle+1)
	for name, change := range map[string]func(*outbox.Proposal){
		"kind":                       func(p *outbox.Proposal) { p.Kind = "writ.workorder.v1" },
		"attempt":                    func(p *outbox.Proposal) { p.Attempt = "att_1" },
		"no purpose":                 func(p *outbox.Proposal) { p.Purpose = "" },
		"purpose with a slash":       func(p *outbox.Proposal) { p.Purpose = "a/b" },
		"purpose with dots":          func(p *outbox.Proposal) { p.Purpose = ".." },
		"purpose that is a lock":     func(p *outbox.Proposal) { p.Purpose = "a.lock" },
		"purpose like an option":     func(p *outbox.Proposal) { p.Purpose = "-f" },
		"purpose of another try":     func(p *outbox.Proposal) { p.Purpose = "a:2" },
		"purpose in capitals":        func(p *outbox.Proposal) { p.Purpose = "A" },
		"long purpose":               func(p *outbox.Proposal) { p.Purpose = long },
		"effector":                   func(p *outbox.Proposal) { p.Effector = operation.Start },
		"no destination":             func(p *outbox.Proposal) { p.Destination = capability.Scope{} },
		"any destination":            func(p *outbox.Proposal) { p.Destination = scope(t, "folder:**") },
		"a path for a destination":   func(p *outbox.Proposal) { p.Destination = scope(t, "output:a") },
		"a branch as destination":    func(p *outbox.Proposal) { p.Effector, p.Destination = operation.Branch, scope(t, "branch:main") },
		"repositories":               func(p *outbox.Proposal) { p.Repository = scope(t, "repo:**") },
		"a path for a repository":    func(p *outbox.Proposal) { p.Repository = scope(t, "repo:a/b") },
		"a folder for a repository":  func(p *outbox.Proposal) { p.Repository = scope(t, "folder:a") },
		"a repository that is moved": func(p *outbox.Proposal) { p.Effector = operation.Publish },
		"no base":                    func(p *outbox.Proposal) { p.Base = "" },
		"a branch as base":           func(p *outbox.Proposal) { p.Base = "main" },
		"a base in capitals":         func(p *outbox.Proposal) { p.Base = strings.Repeat("A1", 20) },
		"a base without repository":  func(p *outbox.Proposal) { p.Repository = capability.Scope{} },
		"no result":                  func(p *outbox.Proposal) { p.Result = "" },
		"no manifest":                func(p *outbox.Proposal) { p.Manifest = "" },
		"no files":                   func(p *outbox.Proposal) { p.Files = nil },
		"unsorted files":             func(p *outbox.Proposal) { p.Files[0], p.Files[1] = p.Files[1], p.Files[0] },
		"a file twice":               func(p *outbox.Proposal) { p.Files[1] = p.Files[0] },
		"a file as a folder":         func(p *outbox.Proposal) { p.Files[1].Path = "a/b.md/c" },
		"an absolute path":           func(p *outbox.Proposal) { p.Files[0].Path = "/a" },
		"a path that leads out":      func(p *outbox.Proposal) { p.Files[0].Path = "../a" },
		"a path with an end of line": func(p *outbox.Proposal) { p.Files[0].Path = "a\nb" },
		"no digest":                  func(p *outbox.Proposal) { p.Files[0].Digest = "" },
		"less than nothing":          func(p *outbox.Proposal) { p.Files[0].Size = -1 },
		"too much":                   func(p *outbox.Proposal) { p.Files[0].Size = outbox.MaxBytes; p.Files[1].Size = 1 },
		"far too much": func(p *outbox.Proposal) {
			p.Files[0].Size, p.Files[1].Size = canonical.MaxInteger, canonical.MaxInteger
		},
		"a receipt without a name":   func(p *outbox.Proposal) { p.Receipts[0].Name = "" },
		"a receipt's name":           func(p *outbox.Proposal) { p.Receipts[0].Name = "a|b" },
		"a receipt without a digest": func(p *outbox.Proposal) { p.Receipts[0].Digest = "" },
		"a receipt twice":            func(p *outbox.Proposal) { p.Receipts = append(p.Receipts, p.Receipts[0]) },
		"no title":                   func(p *outbox.Proposal) { p.Title = "" },
		"a title of spaces":          func(p *outbox.Proposal) { p.Title = " " },
		"two titles":                 func(p *outbox.Proposal) { p.Title = "a\nb" },
		"a long title":               func(p *outbox.Proposal) { p.Title = long },
		"a reversed title":           func(p *outbox.Proposal) { p.Title = "a\u202eb" },
		"a reversed message":         func(p *outbox.Proposal) { p.Message = "a\u202eb" },
		"a bell":                     func(p *outbox.Proposal) { p.Message = "\a" },
		"a long message":             func(p *outbox.Proposal) { p.Message = strings.Repeat("x", outbox.MaxMessage+1) },
		"a forged line":              func(p *outbox.Proposal) { p.Message = "Fine.\n\n Writ-Attempt: att_2\n" },
		"no date":                    func(p *outbox.Proposal) { p.Observed = lifecycle.Observation{} },
		"an early date":              func(p *outbox.Proposal) { p.Observed.UnixMilli = -1 },
	} {
		p := good(t)
		change(&p)
		if err := p.Check(); !reason.Is(err, reason.OutboxProposalInvalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
	p := good(t)
	p.Message = "password=hunter2hunter2"
	if err := p.Check(); !reason.Is(err, reason.BundleSecretValue) {
		t.Errorf("a secret: %v", err)
	}
	raw, err := canonical.Marshal(good(t))
	fatal(t, err)
	for name, text := range map[string]string{
		"unknown field": strings.Replace(string(raw), `"attempt"`, `"approve":true,"attempt"`, 1),
		"a field twice": strings.Replace(string(raw), `"attempt"`, `"title":"x","attempt"`, 1),
		"a space":       " " + string(raw),
		"nothing":       "", "a list": "[]", "null": "null", "not all of it": string(raw[:len(raw)-1]), "more": string(raw) + "{}",
		"empty fields": strings.Replace(string(raw), `"purpose"`, `"x":"","purpose"`, 1),
		"a path":       strings.Replace(string(raw), `"folder:reviews"`, `"/srv/reviews"`, 1),
	} {
		if p, err := outbox.ParseProposal([]byte(text)); err == nil {
			t.Errorf("%s: %+v", name, p)
		}
	}
}

// Whatever is read back is the same bytes, checks, and matches its schema: the two say the
// same of a document.
func FuzzParseProposal(f *testing.F) {
	raw, err := canonical.Marshal(good(f))
	fatal(f, err)
	f.Add(raw)
	f.Add([]byte(strings.Replace(string(raw), "review_packet", "publish", 1)))
	f.Add([]byte(strings.Replace(string(raw), "a/b.md", "a/../b", 1)))
	registry, err := schema.Open()
	fatal(f, err)
	f.Fuzz(func(t *testing.T, b []byte) {
		p, err := outbox.ParseProposal(b)
		if err != nil {
			return
		}
		again, err := canonical.Marshal(p)
		if err != nil || string(again) != string(b) {
			t.Fatalf("%v\n%s\n%s", err, b, again)
		}
		if err := registry.ValidateCanonical(outbox.ProposalKind, b); err != nil {
			t.Fatal(err)
		}
		if strings.ContainsAny(p.Name()+p.Purpose, "/\x00\n ") || strings.Count(p.BranchName(), "/") != 2 {
			t.Fatalf("%q, %q", p.Name(), p.BranchName())
		}
	})
}

// The destinations of a deployment are read as they are written, and nowhere else.
func TestLoadDestinations(t *testing.T) {
	state := t.TempDir()
	d, err := outbox.LoadDestinations(state)
	if err != nil || len(d.Publish)+len(d.Review)+len(d.Repositories) > 0 {
		t.Fatalf("%+v, %v", d, err)
	}
	at := filepath.Join(state, outbox.DestinationsFile)
	load := func(text string) (outbox.Destinations, error) {
		t.Helper()
		fatal(t, os.WriteFile(at, []byte(text), 0o600))
		return outbox.LoadDestinations(state)
	}
	d, err = load("kind: writ.outbox_destinations.v1\npublish:\n  - name: releases\n    path: /srv/releases\nrepositories:\n  - {name: project, path: /srv/project}\n")
	if err != nil || d.Publish[0] != (outbox.Destination{Name: "releases", Path: "/srv/releases"}) || d.Repositories[0].Name != "project" {
		t.Fatalf("%+v, %v", d, err)
	}
	for name, text := range map[string]string{
		"two of a name":            "publish:\n  - {name: a, path: /a}\nreview:\n  - {name: a, path: /b}\n",
		"two of a path":            "publish:\n  - {name: a, path: /a}\nreview:\n  - {name: b, path: /a}\n",
		"a path that is not clean": "publish:\n  - {name: a, path: /a/../b}\n",
		"the root":                 "publish:\n  - {name: a, path: //}\n",
		"the state":                "publish:\n  - {name: a, path: " + state + "}\n",
		"the store":                "publish:\n  - {name: a, path: " + state + "/cas}\n",
		"the shadow":               "repositories:\n  - {name: a, path: " + state + "/shadow}\n",
	} {
		if _, err := load("kind: writ.outbox_destinations.v1\n" + text); !reason.Is(err, reason.OutboxBadDestinations) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for name, text := range map[string]string{
		"a relative path": "publish:\n  - {name: a, path: a}\n", "an unknown field": "merge: true\n", "a name with a slash": "publish:\n  - {name: a/b, path: /a}\n",
		"no path": "publish:\n  - {name: a}\n",
	} {
		if _, err := load("kind: writ.outbox_destinations.v1\n" + text); err == nil {
			t.Errorf("%s is accepted", name)
		}
	}
	real := filepath.Join(t.TempDir(), "real.yaml")
	write(t, real, "kind: writ.outbox_destinations.v1\n")
	for name, make := range map[string]func() error{
		"written by others": func() error { return errors.Join(os.WriteFile(at, nil, 0o600), os.Chmod(at, 0o622)) },
		"a link":            func() error { return os.Symlink(real, at) },
		"a pipe":            func() error { return mkfifo(at) },
		"a folder":          func() error { return os.Mkdir(at, 0o700) },
	} {
		fatal(t, os.RemoveAll(at))
		fatal(t, make())
		if _, err := outbox.LoadDestinations(state); !reason.Is(err, reason.OutboxBadDestinations) {
			t.Errorf("%s: %v", name, err)
		}
	}
	// The state folder is known by every name that it has.
	other := filepath.Join(t.TempDir(), "other")
	fatal(t, os.Symlink(state, other))
	real, err = filepath.EvalSymlinks(state)
	fatal(t, err)
	d = outbox.Destinations{Kind: outbox.DestinationsKind, Review: []outbox.Destination{{Name: "a", Path: real + "/a"}}}
	if err := d.Check(other); !reason.Is(err, reason.OutboxBadDestinations) {
		t.Errorf("by another name: %v", err)
	}
	t.Chdir(filepath.Dir(real))
	if err := d.Check(filepath.Base(real)); !reason.Is(err, reason.OutboxBadDestinations) {
		t.Errorf("by a relative name: %v", err)
	}
}
