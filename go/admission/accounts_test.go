package admission_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/writ-runtime/writ/go/admission"
	"github.com/writ-runtime/writ/go/reason"
	"github.com/writ-runtime/writ/go/schema"
	"github.com/writ-runtime/writ/go/workorder"
)

const someAccounts = `kind: writ.accounts.v1
accounts:
  - {name: research, ceiling: {wall_ms: 70000, calls: 0}}
  - {name: old, ceiling: {tokens: 1}, closed: the project is over}
prices:
  - {tool: empty, run: {amount: 0, currency: EUR, scale: 2}}
`

func TestLoadAccounts(t *testing.T) {
	dir := t.TempDir()
	if a, err := admission.LoadAccounts(dir); err != nil || len(a.Accounts) != 0 {
		t.Errorf("without a file: %+v, %v", a, err)
	}
	if err := os.WriteFile(filepath.Join(dir, admission.AccountsFile), []byte(someAccounts), 0o600); err != nil {
		t.Fatal(err)
	}
	a, err := admission.LoadAccounts(dir)
	if err != nil {
		t.Fatal(err)
	}
	research, err := a.Find("research")
	// A unit that is left out has no ceiling; one of zero has.
	if c := research.Ceiling; err != nil || c.Calls == nil || *c.Calls != 0 || c.Tokens != nil || c.Money != nil || research.Closed != "" {
		t.Errorf("%+v, %v", research, err)
	}
	if old, err := a.Find("old"); err != nil || old.Closed == "" {
		t.Errorf("%+v, %v", old, err)
	}
	if _, err := a.Find("nobody"); !reason.Is(err, reason.BudgetUnknownAccount) {
		t.Errorf("an account of nobody: %v", err)
	}
	// Nothing is not the same as no price.
	if p := a.Price("empty"); p == nil || *p != (workorder.Money{Currency: "EUR", Scale: 2}) {
		t.Errorf("a run of empty costs %+v", p)
	}
	if p := a.Price("textstat"); p != nil {
		t.Errorf("a run of textstat costs %+v", p)
	}
}

// A file that others could have written, or that is no plain file, says nothing.
func TestAccountsThatCannotBeTrusted(t *testing.T) {
	for name, spoil := range map[string]func(path string) error{
		"others may write it":       func(p string) error { return os.Chmod(p, 0o602) },
		"the group may write it":    func(p string) error { return os.Chmod(p, 0o620) },
		"a link":                    func(p string) error { return errors.Join(os.Rename(p, p+".kept"), os.Symlink(p+".kept", p)) },
		"a folder":                  func(p string) error { return errors.Join(os.Remove(p), os.Mkdir(p, 0o700)) },
		"a queue that nobody fills": func(p string) error { return errors.Join(os.Remove(p), unix.Mkfifo(p, 0o600)) },
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			path := filepath.Join(dir, admission.AccountsFile)
			if err := os.WriteFile(path, []byte(someAccounts), 0o600); err != nil {
				t.Fatal(err)
			}
			if err := spoil(path); err != nil {
				t.Fatal(err)
			}
			if _, err := admission.LoadAccounts(dir); !reason.Is(err, reason.BudgetBadAccounts) {
				t.Errorf("it is taken: %v", err)
			}
		})
	}
}

func TestAccountsThatContradictThemselves(t *testing.T) {
	const start = "kind: writ.accounts.v1\n"
	for name, text := range map[string]string{
		"two of one name": start + "accounts: [{name: a, ceiling: {calls: 1}}, {name: a, ceiling: {calls: 2}}]\n",
		"two prices":      start + "prices: [{tool: a, run: {amount: 1, currency: EUR, scale: 2}}, {tool: a, run: {amount: 2, currency: EUR, scale: 2}}]\n",
		"no unit":         start + "accounts: [{name: a, ceiling: {}}]\n",
		"a unit unknown":  start + "accounts: [{name: a, ceiling: {retries: 1}}]\n",
		"less than none":  start + "accounts: [{name: a, ceiling: {calls: -1}}]\n",
		"half a cent":     start + "prices: [{tool: a, run: {amount: 0.5, currency: EUR, scale: 2}}]\n",
		"no currency":     start + "prices: [{tool: a, run: {amount: 1, currency: euro, scale: 2}}]\n",
		"no name":         start + "accounts: [{name: A b, ceiling: {calls: 1}}]\n",
		"another kind":    "kind: writ.workorder.v1\n",
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			if err := os.WriteFile(filepath.Join(dir, admission.AccountsFile), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			_, err := admission.LoadAccounts(dir)
			var invalid *schema.InvalidError
			if !reason.Is(err, reason.BudgetBadAccounts) && !errors.As(err, &invalid) {
				t.Errorf("it is taken: %v", err)
			}
		})
	}
}
