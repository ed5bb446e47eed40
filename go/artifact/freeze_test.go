package artifact_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"path"
	"slices"
	"strings"
	"testing"
	"unicode/utf16"

	"pgregory.net/rapid"

	"github.com/writ-runtime/writ/go/artifact"
	"github.com/writ-runtime/writ/go/canonical"
	"github.com/writ-runtime/writ/go/journal"
	"github.com/writ-runtime/writ/go/protocol"
	"github.com/writ-runtime/writ/go/reason"
)

// file is one entry of a fake workspace and what opening it does.
type file struct {
	artifact.Entry
	content string
	openErr error
	readErr error // after the content
	endless bool
	// closeErr is how a source says that the file changed.
	closeErr error
}

// source is a fake workspace that remembers what was read of it.
type source struct {
	files   []file
	listErr error
	opened  map[string]int64 // bytes served
}

func (s *source) Entries(context.Context) iter.Seq2[artifact.Entry, error] {
	return func(yield func(artifact.Entry, error) bool) {
		for _, f := range s.files {
			if !yield(f.Entry, nil) {
				return
			}
		}
		if s.listErr != nil {
			yield(artifact.Entry{}, s.listErr)
		}
	}
}

func (s *source) Open(_ context.Context, path string) (io.ReadCloser, error) {
	for _, f := range s.files {
		if f.Path != path {
			continue
		}
		if s.opened == nil {
			s.opened = map[string]int64{}
		}
		s.opened[path] = 0
		return &reading{source: s, file: f, rest: strings.NewReader(f.content)}, f.openErr
	}
	return nil, errors.New("no such file")
}

type reading struct {
	source *source
	file   file
	rest   *strings.Reader
}

func (r *reading) Read(p []byte) (int, error) {
	n, err := r.rest.Read(p)
	if err == io.EOF && r.file.endless {
		n, err = len(p), nil
	}
	if err == io.EOF && r.file.readErr != nil {
		err = r.file.readErr
	}
	r.source.opened[r.file.Path] += int64(n)
	return n, err
}

func (r *reading) Close() error { return r.file.closeErr }

func plain(path, content string) file {
	return file{Entry: artifact.Entry{Path: path, Type: artifact.File, Size: int64(len(content)), Links: 1}, content: content}
}

func of(path string, t artifact.EntryType) file {
	return file{Entry: artifact.Entry{Path: path, Type: t, Links: 1}}
}

func with(f file, change func(*file)) file { change(&f); return f }

func declare(paths ...string) protocol.OutputPolicy {
	p := protocol.OutputPolicy{MaxCount: 4, MaxBytes: 100, PathPolicyVersion: protocol.PathPolicyV1}
	for _, path := range paths {
		path, required := strings.CutPrefix(path, "!")
		p.Paths = append(p.Paths, protocol.Declared{Path: path, MediaType: "text/plain", Required: required})
	}
	return p
}

func codes(excluded []protocol.Exclusion) string {
	var all []string
	for _, x := range excluded {
		all = append(all, x.Path+"="+strings.TrimPrefix(string(x.Code), "freeze."))
	}
	return strings.Join(all, " ")
}

func TestFreeze(t *testing.T) {
	long := strings.Repeat("x", 256)
	deep := strings.Repeat("d/", 32) + "f"
	for _, test := range []struct {
		name     string
		policy   protocol.OutputPolicy
		files    []file
		accepted string // paths, when the freeze is accepted
		omitted  string
		rejected string
	}{
		{name: "nothing declared, nothing there", policy: declare()},
		{name: "plain", policy: declare("!a.txt", "out/**"), accepted: "a.txt out/b out/c/d",
			files: []file{of("out", artifact.Dir), plain("out/c/d", "2"), of("out/c", artifact.Dir), plain("out/b", "1"), plain("a.txt", "")}},
		{name: "optional is absent", policy: declare("a")},
		{name: "undeclared stays", policy: declare("a"), accepted: "a", omitted: "b=undeclared c=undeclared d=undeclared e=undeclared",
			files: []file{plain("a", "1"), plain("b", "2"), of("c", artifact.Symlink), of("d", artifact.Dir), of("e", artifact.Device)}},
		{name: "undeclared beneath a folder on the way", policy: declare("o/p/a"), accepted: "o/p/a", omitted: "o/b=undeclared o/p/q=undeclared",
			files: []file{of("o", artifact.Dir), of("o/p", artifact.Dir), plain("o/p/a", ""), plain("o/b", ""), of("o/p/q", artifact.Dir)}},
		{name: "sorted by UTF-16", policy: declare("o/**"), accepted: "o/a o/\U0001F600 o/\uff61",
			files: []file{plain("o/\uff61", ""), plain("o/\U0001F600", ""), plain("o/a", "")}},

		{name: "required is missing", policy: declare("!a", "!o/**"), rejected: "a=missing o/**=missing", files: []file{of("o", artifact.Dir)}},
		{name: "required is a link", policy: declare("!a"), rejected: "a=unexpected_type", files: []file{of("a", artifact.Symlink)}},
		{name: "traversal", policy: declare("o/**"), rejected: "../x=bad_name o/../../x=bad_name",
			files: []file{plain("../x", ""), plain("o/../../x", "")}},
		{name: "absolute", policy: declare("o/**"), rejected: "/etc/passwd=bad_name", files: []file{plain("/etc/passwd", "")}},
		{name: "dot segments", policy: declare("o/**"), rejected: "./o/x=bad_name o/./x=bad_name", files: []file{plain("./o/x", ""), plain("o/./x", "")}},
		{name: "empty names", policy: declare("o/**"), rejected: `""=bad_name o//x=bad_name o/x/=bad_name`,
			files: []file{plain("", ""), plain("o//x", ""), plain("o/x/", "")}},
		{name: "NUL and control characters", policy: declare("o/**"), rejected: `"o/\n"=bad_name "o/\u202e"=bad_name "o/\x00"=bad_name`,
			files: []file{plain("o/\n", ""), plain("o/\x00", ""), plain("o/\u202e", "")}},
		{name: "backslash", policy: declare("o/**"), rejected: `o\x=bad_name`, files: []file{plain(`o\x`, "")}},
		{name: "no UTF-8", policy: declare("o/**"), rejected: `"o/\xff"=bad_name`, files: []file{plain("o/\xff", "")}},
		{name: "not NFC", policy: declare("o/**"), rejected: `"o/a\u0308"=bad_name`, files: []file{plain("o/a\u0308", "")}},
		{name: "too long", policy: declare("o/**"), rejected: "o/" + long + "=bad_name", files: []file{plain("o/"+long, "")}},
		{name: "too deep", policy: declare("d/**"), rejected: deep + "=bad_name", files: []file{plain(deep, "")}},
		{name: "bad name of something undeclared", policy: declare("a"), rejected: "../a=bad_name", files: []file{plain("a", ""), of("../a", artifact.Dir)}},

		{name: "case", policy: declare("o/**"), rejected: "o/A=collision o/a=collision", files: []file{plain("o/a", ""), plain("o/A", "")}},
		{name: "case beyond ASCII", policy: declare("o/**"), rejected: "o/Straße=collision o/strasse=collision",
			files: []file{plain("o/Straße", ""), plain("o/strasse", "")}},
		{name: "case of a folder", policy: declare("o/**"), rejected: "o/D/a=collision o/d/b=collision", files: []file{plain("o/d/b", ""), plain("o/D/a", "")}},
		{name: "case of what was declared", policy: declare("report.json"), rejected: "Report.json=collision", files: []file{plain("Report.json", "")}},
		{name: "case among undeclared", policy: declare("a"), accepted: "a", omitted: "B=undeclared b=undeclared",
			files: []file{plain("a", ""), plain("b", ""), plain("B", "")}},
		{name: "listed twice", policy: declare("a"), rejected: "a=collision a=collision", files: []file{plain("a", "1"), plain("a", "1")}},

		{name: "hard link", policy: declare("a"), rejected: "a=hardlink", files: []file{with(plain("a", ""), func(f *file) { f.Links = 2 })}},
		{name: "no link", policy: declare("a"), rejected: "a=hardlink", files: []file{with(plain("a", ""), func(f *file) { f.Links = 0 })}},
		{name: "every other type", policy: declare("o/**"),
			rejected: "o/d=unexpected_type o/f=unexpected_type o/l=unexpected_type o/o=unexpected_type o/s=unexpected_type o/x=unexpected_type",
			files: []file{of("o/l", artifact.Symlink), of("o/d", artifact.Device), of("o/s", artifact.Socket), of("o/f", artifact.FIFO),
				of("o/o", artifact.Other), of("o/x", "")}},
		{name: "folder where a file was declared", policy: declare("a"), rejected: "a=unexpected_type", files: []file{of("a", artifact.Dir)}},
		{name: "file where a folder was declared", policy: declare("a/**"), rejected: "a=unexpected_type", files: []file{plain("a", "")}},
		{name: "link where a folder was declared", policy: declare("a/**"), rejected: "a=unexpected_type a/b=unexpected_type",
			files: []file{of("a", artifact.Symlink), plain("a/b", "")}},
		{name: "link on the way", policy: declare("o/p/a"), rejected: "o=unexpected_type o/p/a=unexpected_type",
			files: []file{of("o", artifact.Symlink), plain("o/p/a", "")}},
		{name: "file beneath a file", policy: declare("o/**"), rejected: "o/a/b=unexpected_type", files: []file{plain("o/a", ""), plain("o/a/b", "")}},

		{name: "too many", policy: declare("o/**"), rejected: "o/4=too_many",
			files: []file{plain("o/0", ""), plain("o/4", ""), plain("o/1", ""), plain("o/3", ""), plain("o/2", "")}},
		{name: "too large alone", policy: declare("a"), rejected: "a=too_large", files: []file{plain("a", strings.Repeat("x", 101))}},
		{name: "too large together", policy: declare("o/**"), rejected: "o/b=too_large",
			files: []file{plain("o/b", strings.Repeat("x", 50)), plain("o/a", strings.Repeat("x", 51))}},
		{name: "just fits", policy: declare("o/**"), accepted: "o/a o/b",
			files: []file{plain("o/b", strings.Repeat("x", 50)), plain("o/a", strings.Repeat("x", 50))}},
		{name: "negative size", policy: declare("a"), rejected: "a=too_large", files: []file{with(plain("a", ""), func(f *file) { f.Size = -1 })}},
		{name: "huge sizes", policy: declare("o/**"), rejected: "o/a=too_large o/b=too_large",
			files: []file{with(plain("o/a", ""), func(f *file) { f.Size = 1<<63 - 1 }), with(plain("o/b", ""), func(f *file) { f.Size = 1<<63 - 1 })}},

		{name: "growing", policy: declare("a"), rejected: "a=unstable", files: []file{with(plain("a", "12345"), func(f *file) { f.Size = 4 })}},
		{name: "endless", policy: declare("a"), rejected: "a=unstable", files: []file{with(plain("a", "1"), func(f *file) { f.endless = true })}},
		{name: "short", policy: declare("a"), rejected: "a=unstable", files: []file{with(plain("a", "123"), func(f *file) { f.Size = 4 })}},
		{name: "changed", policy: declare("a"), rejected: "a=unstable", files: []file{with(plain("a", "1"), func(f *file) { f.closeErr = errors.New("changed") })}},
		{name: "cannot be opened", policy: declare("a"), rejected: "a=unreadable", files: []file{with(plain("a", "1"), func(f *file) { f.openErr = errors.New("gone") })}},
		{name: "cannot be read", policy: declare("a"), rejected: "a=unreadable", files: []file{with(plain("a", "1"), func(f *file) { f.readErr = errors.New("gone") })}},
		{name: "the second fails", policy: declare("o/**"), rejected: "o/b=unstable", omitted: "x=undeclared",
			files: []file{plain("o/a", "1"), with(plain("o/b", "1"), func(f *file) { f.Size = 2 }), plain("x", "")}},
	} {
		t.Run(test.name, func(t *testing.T) {
			dir := t.TempDir()
			src := &source{files: test.files}
			attestation := canonical.Sum([]byte("attestation"))
			frozen, err := artifact.Freeze(t.Context(), src, test.policy, attestation, open(t, dir))
			m := frozen.Manifest
			var accepted []string
			for _, e := range m.Entries {
				accepted = append(accepted, e.Path)
			}
			if strings.Join(accepted, " ") != test.accepted || codes(m.Omitted) != test.omitted || codes(m.Rejected) != test.rejected {
				t.Errorf("accepted %q, want %q\nomitted %q, want %q\nrejected %q, want %q\nerror %v", accepted, test.accepted,
					codes(m.Omitted), test.omitted, codes(m.Rejected), test.rejected, err)
			}
			if (err != nil) != (test.rejected != "") {
				t.Errorf("error %v", err)
			}
			if err != nil && (reason.CodeOf(err) != m.Rejected[0].Code || len(frozen.Blobs) != 0 || m.Bytes != 0) {
				t.Errorf("a refused freeze left %+v, %v", frozen, err)
			}
			if m.Attestation != attestation || m.PathPolicy != protocol.PathPolicyV1 {
				t.Errorf("the manifest is not bound: %+v", m)
			}
			if _, err := canonical.Marshal(m); err != nil {
				t.Errorf("the manifest has no canonical form: %v", err)
			}
			for _, x := range m.Omitted {
				if _, read := src.opened[x.Path]; read {
					t.Errorf("undeclared %s was opened", x.Path)
				}
			}
			for path, n := range src.opened {
				for _, f := range test.files {
					if f.Path == path && n > f.Size+1 {
						t.Errorf("%d bytes of %s were read, listed were %d", n, path, f.Size)
					}
				}
			}
			if got := files(t, dir); len(got) != 0 {
				t.Errorf("files %v were left", got)
			}
		})
	}
}

func TestFreezeManifest(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	large := string(big('a'))
	p := declare("o/**")
	p.MaxBytes = 1 << 20
	src := &source{files: []file{plain("o/small", "same"), plain("o/same", "same"), plain("o/large", large),
		with(plain("o/tool", "#!"), func(f *file) { f.Executable = true })}}
	frozen, err := artifact.Freeze(t.Context(), src, p, canonical.Sum(nil), s)
	if err != nil {
		t.Fatal(err)
	}
	entry := func(path, content string, executable bool) protocol.ArtifactEntry {
		return protocol.ArtifactEntry{Path: path, Type: "file", Executable: executable, Size: int64(len(content)),
			Digest: canonical.Sum([]byte(content)), MediaType: "text/plain"}
	}
	want := []protocol.ArtifactEntry{entry("o/large", large, false), entry("o/same", "same", false), entry("o/small", "same", false), entry("o/tool", "#!", true)}
	if !slices.Equal(frozen.Manifest.Entries, want) || frozen.Manifest.Bytes != int64(len(large))+10 {
		t.Errorf("manifest %+v", frozen.Manifest)
	}
	if len(frozen.Blobs) != 2 {
		t.Errorf("%d blobs, want 2", len(frozen.Blobs))
	}
	if b, err := s.Read(t.Context(), canonical.Sum([]byte(large)), 1<<20); err != nil || string(b) != large {
		t.Errorf("the large file reads %d bytes, %v", len(b), err)
	}
}

func TestFreezeFailsWhole(t *testing.T) {
	p := declare("o/**")
	p.MaxBytes = 1 << 20
	// The first file is large and sound: it must not be published when the second is not.
	files2 := []file{plain("o/a", string(big('a'))), with(plain("o/b", string(big('b'))), func(f *file) { f.Size++ })}
	dir := t.TempDir()
	if _, err := artifact.Freeze(t.Context(), &source{files: files2}, p, canonical.Sum(nil), open(t, dir)); !reason.Is(err, reason.FreezeUnstable) {
		t.Errorf("error %v", err)
	}
	if got := files(t, dir); len(got) != 0 {
		t.Errorf("files %v were left", got)
	}
	if _, err := artifact.Freeze(t.Context(), &source{listErr: errors.New("gone")}, p, canonical.Sum(nil), open(t, dir)); !reason.Is(err, reason.FreezeUnreadable) {
		t.Errorf("listing fails: %v", err)
	}
	if _, err := artifact.Freeze(t.Context(), &source{}, protocol.OutputPolicy{}, canonical.Sum(nil), open(t, dir)); !reason.Is(err, reason.FreezeBadPolicy) {
		t.Errorf("bad policy: %v", err)
	}
	many := &source{}
	for i := range 3 * protocol.MaxOutputs {
		many.files = append(many.files, plain(fmt.Sprint(i), ""))
	}
	if f, err := artifact.Freeze(t.Context(), many, p, canonical.Sum(nil), open(t, dir)); !reason.Is(err, reason.FreezeTooMany) || len(f.Manifest.Omitted) != 0 {
		t.Errorf("too many entries: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := artifact.Freeze(ctx, &source{files: files2}, p, canonical.Sum(nil), open(t, dir)); !errors.Is(err, context.Canceled) {
		t.Errorf("ended context: %v", err)
	}
	reader, err := artifact.Open(dir, noBlobs{}, artifact.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := artifact.Freeze(t.Context(), &source{files: files2[:1]}, p, canonical.Sum(nil), reader); !reason.Is(err, reason.ArtifactReadOnly) {
		t.Errorf("read-only store: %v", err)
	}
}

// TestFreezeProperties draws workspaces of hostile names, types, links and sizes, and
// holds what comes out against rules written down a second time, in other words.
func TestFreezeProperties(t *testing.T) {
	names := []string{"a", "A", "ä", "a\u0308", "..", ".", "", "o", "O", "x\n", "\xff", `b\c`, "\u202e", "f", strings.Repeat("n", 256), "\U0001F600", "\uff61"}
	types := []artifact.EntryType{artifact.File, artifact.File, artifact.File, artifact.File, artifact.Dir, artifact.Symlink, artifact.Device, artifact.FIFO, ""}
	store := open(t, t.TempDir())
	rapid.Check(t, func(t *rapid.T) {
		src := &source{}
		for range rapid.IntRange(0, 6).Draw(t, "entries") {
			segments := rapid.SliceOfN(rapid.SampledFrom(names), 1, 3).Draw(t, "segments")
			f := plain(strings.Join(segments, "/"), rapid.StringN(0, 40, 60).Draw(t, "content"))
			if rapid.IntRange(0, 3).Draw(t, "hostile") == 0 {
				f.Type = rapid.SampledFrom(types).Draw(t, "type")
				f.Links = rapid.Uint64Range(0, 2).Draw(t, "links")
				f.Size += rapid.Int64Range(-1, 1).Draw(t, "lie")
				f.endless = rapid.Bool().Draw(t, "endless")
			}
			src.files = append(src.files, f)
		}
		p := declare(rapid.SampledFrom([][]string{{"a"}, {"o/**"}, {"a", "o/a"}, {"o/a/**", "f"}, {"!a"}}).Draw(t, "declared")...)
		p.MaxCount = rapid.Int64Range(0, 4).Draw(t, "count")
		frozen, err := artifact.Freeze(context.Background(), src, p, canonical.Sum(nil), store)
		checkFrozen(t, src, p, frozen, err)

		// The order in which a source lists must not show.
		slices.Reverse(src.files)
		again, err2 := artifact.Freeze(context.Background(), src, p, canonical.Sum(nil), store)
		first, _ := canonical.Marshal(frozen.Manifest)
		second, _ := canonical.Marshal(again.Manifest)
		if !bytes.Equal(first, second) || (err == nil) != (err2 == nil) {
			t.Fatalf("listed in another order:\n%s\n%s", first, second)
		}
	})
}

func checkFrozen(t *rapid.T, src *source, p protocol.OutputPolicy, frozen artifact.Frozen, err error) {
	m := frozen.Manifest
	if err != nil && (len(m.Entries) != 0 || len(frozen.Blobs) != 0 || len(m.Rejected) == 0) {
		t.Fatalf("refused with %v, and yet %+v", err, m)
	}
	var sum int64
	served := map[canonical.Digest][]byte{}
	for _, b := range frozen.Blobs {
		served[b.Digest] = b.Bytes
	}
	for i, e := range m.Entries {
		if i > 0 && slices.Compare(utf16.Encode([]rune(m.Entries[i-1].Path)), utf16.Encode([]rune(e.Path))) >= 0 {
			t.Fatalf("%q does not sort after %q", e.Path, m.Entries[i-1].Path)
		}
		if path.Clean("/w/"+e.Path) != "/w/"+e.Path || !strings.HasPrefix(path.Clean("/w/"+e.Path), "/w/") {
			t.Fatalf("%q escapes", e.Path)
		}
		if !slices.ContainsFunc(p.Paths, func(d protocol.Declared) bool {
			return d.Path == e.Path || strings.HasSuffix(d.Path, "/**") && strings.HasPrefix(e.Path, strings.TrimSuffix(d.Path, "**"))
		}) {
			t.Fatalf("%q was not declared", e.Path)
		}
		for _, other := range m.Entries[:i] {
			if strings.EqualFold(other.Path, e.Path) || strings.HasPrefix(e.Path, other.Path+"/") {
				t.Fatalf("%q and %q cannot both be files", other.Path, e.Path)
			}
		}
		at := slices.IndexFunc(src.files, func(f file) bool { return f.Path == e.Path })
		f := src.files[at]
		if f.Type != artifact.File || f.Links != 1 || f.endless || f.content != string(served[e.Digest]) || e.Size != int64(len(f.content)) {
			t.Fatalf("%q became %+v", f.Path, e)
		}
		sum += e.Size
	}
	if sum != m.Bytes || sum > p.MaxBytes || int64(len(m.Entries)) > p.MaxCount {
		t.Fatalf("%d bytes in %d files", sum, len(m.Entries))
	}
	if err == nil {
		// Nothing is passed over in silence: every file is accepted or listed as left out.
		for _, f := range src.files {
			known := f.Type == artifact.Dir ||
				slices.ContainsFunc(m.Entries, func(e protocol.ArtifactEntry) bool { return e.Path == f.Path }) ||
				slices.ContainsFunc(m.Omitted, func(x protocol.Exclusion) bool { return x.Path == protocol.EscapePath(f.Path) })
			if !known {
				t.Fatalf("%q is nowhere", f.Path)
			}
		}
	}
	for path, n := range src.opened {
		i := slices.IndexFunc(src.files, func(f file) bool { return f.Path == path })
		if n > src.files[i].Size+1 || len(src.files[i].content) > journal.MaxBlob {
			t.Fatalf("%d bytes of %q were read", n, path)
		}
	}
}
