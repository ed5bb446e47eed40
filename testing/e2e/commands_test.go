package e2e_test

import (
	"bytes"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"github.com/rogpeppe/go-internal/testscript"
	_ "modernc.org/sqlite" // the driver of the sql command

	"github.com/writ-runtime/writ/testing/built"
)

type script = testscript.TestScript

// commands are the commands that scripts use beside testscript's own:
//
//	exits STATUS PROGRAM ARG...     runs it, and holds its exit status against STATUS
//	nobody STATUS PROGRAM ARG...    the same, as a user that owns nothing
//	fresh STATE...                  makes state folders with nothing but compiled code in them
//	truth STATE STANDING...         writ verify passes, and the attempts stand like that, oldest first
//	variant FILE FROM OLD NEW...    writes FROM to FILE with each OLD replaced by NEW (\n is a line's end)
//	json FILE [PATH VALUE]...       FILE (or stdout, stderr) is one JSON document with these values; VALUE * is any
//	take VARIABLE FILE PATH         puts a value of a JSON document into a variable
//	sha256 FILE DIGEST              the file has the digest
//	tree FROM TO                    copies a folder
//	sql FILE STATEMENT              runs a statement on an SQLite file
//	damage STATE STATEMENT          runs a statement on the journal, which must change rows, past its own guards
//	disk VARIABLE SIZE              mounts a small file system, puts its path into a variable, and has exits, fresh and
//	                                truth run where it can be seen
//	remount VARIABLE OPTIONS        changes it, as with size=8m or ro
//	start NAME PROGRAM ARG...       runs it in the background
//	await NAME TEXT                 waits until it has printed TEXT to standard error
//	signal NAME SIGNAL [PROGRAM]    sends INT, TERM or KILL to it, or to its child that runs the sealed PROGRAM
//	ended NAME STATUS|... [FILE]    waits for its end; its output goes to FILE.out and FILE.err
//	noorphans                       waits until no process is left of those that were killed
func commands(s *suite) map[string]func(*script, bool, []string) {
	all := map[string]func(*script, []string) error{
		"exits":     func(ts *script, args []string) error { return exits(ts, nil, args) },
		"nobody":    func(ts *script, args []string) error { return exits(ts, nobody(), args) },
		"fresh":     func(ts *script, args []string) error { return fresh(ts, s, args) },
		"truth":     truth,
		"variant":   variant,
		"json":      jsonHas,
		"take":      take,
		"sha256":    hasDigest,
		"tree":      tree,
		"sql":       runSQL,
		"damage":    damage,
		"disk":      disk,
		"remount":   remount,
		"start":     start,
		"await":     await,
		"signal":    sendSignal,
		"ended":     ended,
		"noorphans": noOrphans,
	}
	cmds := map[string]func(*script, bool, []string){}
	for name, run := range all {
		cmds[name] = func(ts *script, neg bool, args []string) {
			if neg {
				ts.Fatalf("! %s has no meaning", name)
			}
			if err := run(ts, args); err != nil {
				ts.Fatalf("%s: %v", name, err)
			}
		}
	}
	return cmds
}

var errUsage = errors.New("see the list of commands for its arguments")

// nobody is a user that owns nothing. Root becomes another user; anybody else is one.
func nobody() *syscall.SysProcAttr {
	if os.Geteuid() != 0 {
		return nil
	}
	return &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
}

// exits runs a program. What it printed is there for stdout, stderr and cmp afterwards.
func exits(ts *script, as *syscall.SysProcAttr, args []string) error {
	if len(args) < 2 {
		return errUsage
	}
	want, err := strconv.Atoi(args[0])
	if err != nil {
		return err
	}
	if as == nil {
		line := within(ts, args[1:])
		err = ts.Exec(line[0], line[1:]...)
	} else {
		err = execAs(ts, as, args[1:])
	}
	got := 0
	var exit *exec.ExitError
	switch {
	case errors.As(err, &exit):
		got = exit.ExitCode()
	case err != nil:
		return err
	}
	if got != want {
		return fmt.Errorf("exit status %d, want %d", got, want)
	}
	return nil
}

// execAs runs a program as somebody else; testscript's own Exec cannot. It leaves the
// output in the files nobody.out and nobody.err.
func execAs(ts *script, as *syscall.SysProcAttr, args []string) error {
	cmd := command(ts, args)
	cmd.SysProcAttr = as
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Run()
	ts.Logf("[as nobody]\n%s%s", out.String(), errs.String())
	return errors.Join(err,
		os.WriteFile(ts.MkAbs("nobody.out"), out.Bytes(), 0o644), os.WriteFile(ts.MkAbs("nobody.err"), errs.Bytes(), 0o644))
}

// command makes a command in the environment of the script.
func command(ts *script, args []string) *exec.Cmd {
	path := args[0]
	for _, dir := range filepath.SplitList(ts.Getenv("PATH")) {
		if p := filepath.Join(dir, args[0]); !strings.Contains(args[0], "/") && isFile(p) {
			path = p
			break
		}
	}
	cmd := exec.Command(path, args[1:]...)
	cmd.Dir = ts.MkAbs(".")
	cmd.Env = []string{"PATH=" + ts.Getenv("PATH"), "WRIT_DIST=" + ts.Getenv("WRIT_DIST")}
	return cmd
}

func isFile(p string) bool {
	info, err := os.Stat(p)
	return err == nil && info.Mode().IsRegular()
}

func fresh(ts *script, s *suite, args []string) error {
	for _, state := range args {
		// As a program, for the folder may be on a disk that this process does not see.
		line := []string{"0", "sh", "-c", `mkdir -p "$1" && cp -r "$0" "$1/cache"`, s.cache, ts.MkAbs(state)}
		if err := exits(ts, nil, line); err != nil {
			return err
		}
	}
	return nil
}

func truth(ts *script, args []string) error {
	if len(args) < 1 {
		return errUsage
	}
	if err := exits(ts, nil, []string{"0", "writ", "verify", "--state", args[0]}); err != nil {
		return fmt.Errorf("verify: %w", err)
	}
	if err := exits(ts, nil, []string{"0", "writ", "status", "--json", "--state", args[0]}); err != nil {
		return fmt.Errorf("status: %w", err)
	}
	var index struct {
		Attempts []struct {
			State, Denied string
			Result        *struct{ Conclusion string }
		}
	}
	if err := json.Unmarshal([]byte(ts.ReadFile("stdout")), &index); err != nil {
		return err
	}
	var got []string
	for _, a := range index.Attempts {
		switch {
		case a.Denied != "":
			got = append(got, "denied")
		case a.Result != nil:
			got = append(got, a.Result.Conclusion)
		default:
			got = append(got, a.State)
		}
	}
	if want := args[1:]; strings.Join(got, " ") != strings.Join(want, " ") {
		return fmt.Errorf("the attempts stand at %v, want %v", got, want)
	}
	return nil
}

func variant(ts *script, args []string) error {
	if len(args) < 4 || len(args)%2 != 0 {
		return errUsage
	}
	text := ts.ReadFile(args[1])
	for i := 2; i < len(args); i += 2 {
		if !strings.Contains(text, args[i]) {
			return fmt.Errorf("%s does not hold %q", args[1], args[i])
		}
		text = strings.Replace(text, args[i], unescape(args[i+1]), 1)
	}
	return os.WriteFile(ts.MkAbs(args[0]), []byte(text), 0o644)
}

// unescape reads \n, \t and \xHH, which a script's line cannot hold.
func unescape(s string) string {
	if u, err := strconv.Unquote(`"` + strings.ReplaceAll(s, `"`, `\"`) + `"`); err == nil {
		return u
	}
	return s
}

func document(ts *script, file string) (any, error) {
	d := json.NewDecoder(strings.NewReader(ts.ReadFile(file)))
	d.UseNumber()
	var doc any
	if err := d.Decode(&doc); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	if d.More() {
		return nil, fmt.Errorf("%s holds more than one document", file)
	}
	return doc, nil
}

// value walks a path such as attempts.0.id; len is the length of a list.
func value(doc any, path string) (string, error) {
	for part := range strings.SplitSeq(path, ".") {
		switch d := doc.(type) {
		case map[string]any:
			v, ok := d[part]
			if !ok {
				return "", fmt.Errorf("no %s in %s", part, path)
			}
			doc = v
		case []any:
			if part == "len" {
				return strconv.Itoa(len(d)), nil
			}
			i, err := strconv.Atoi(part)
			if err != nil || i >= len(d) {
				return "", fmt.Errorf("no item %s of %d in %s", part, len(d), path)
			}
			doc = d[i]
		default:
			return "", fmt.Errorf("no %s in %s", part, path)
		}
	}
	if text, ok := doc.(string); ok {
		return text, nil
	}
	raw, err := json.Marshal(doc)
	return string(raw), err
}

func jsonHas(ts *script, args []string) error {
	if len(args)%2 != 1 {
		return errUsage
	}
	doc, err := document(ts, args[0])
	if err != nil {
		return err
	}
	for i := 1; i < len(args); i += 2 {
		got, err := value(doc, args[i])
		if err != nil {
			return err
		}
		if want := args[i+1]; got != want && want != "*" {
			return fmt.Errorf("%s is %q, want %q", args[i], got, want)
		}
	}
	return nil
}

func take(ts *script, args []string) error {
	if len(args) != 3 {
		return errUsage
	}
	doc, err := document(ts, args[1])
	if err != nil {
		return err
	}
	got, err := value(doc, args[2])
	ts.Setenv(args[0], got)
	return err
}

func hasDigest(ts *script, args []string) error {
	if len(args) != 2 {
		return errUsage
	}
	sum := sha256.Sum256([]byte(ts.ReadFile(args[0])))
	if got := "sha256:" + hex.EncodeToString(sum[:]); got != args[1] {
		return fmt.Errorf("%s has %s, want %s", args[0], got, args[1])
	}
	return nil
}

func tree(ts *script, args []string) error {
	if len(args) != 2 {
		return errUsage
	}
	return built.Copy(ts.MkAbs(args[0]), ts.MkAbs(args[1]))
}

func runSQL(ts *script, args []string) (err error) {
	if len(args) != 2 {
		return errUsage
	}
	db, err := sql.Open("sqlite", ts.MkAbs(args[0]))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	_, err = db.Exec(args[1])
	return err
}

func damage(ts *script, args []string) error {
	if len(args) != 2 {
		return errUsage
	}
	return unguarded(ts.MkAbs(args[0]), func(db *sql.DB) error {
		done, err := db.Exec(args[1])
		if err != nil {
			return err
		}
		if n, err := done.RowsAffected(); err != nil || n == 0 {
			return fmt.Errorf("%d rows were changed: %w", n, err)
		}
		return nil
	})
}
