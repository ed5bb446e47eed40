package a

import (
	_ "embed"
	"errors"
	"fmt"
	"os"
	"regexp"
	"sync"

	"b"
)

// ErrGone is a sentinel.
var ErrGone = errors.New("gone")

var errWrapped = fmt.Errorf("wrapped: %w", ErrGone)

var pattern = regexp.MustCompile("^a$")

var _ fmt.Stringer = version{}

//go:embed a.go
var text []byte

type version struct {
	major, minor int
	pre          [2]string
}

func (version) String() string { return "" }

func (v *version) bump() { v.major++ }

var current = version{major: 1}

var limit = 1 << 20

// names is a table.
//
//writ:immutable read only, and never handed out
var names = map[string]int{"a": 1}

var (
	grouped = []string{"x"} // want `package-level variable grouped can change`

	//writ:immutable nothing writes to it
	fine = []string{"y"}

	//writ:immutable
	unsaid = []string{"y"} // want `must say why`
)

var cache = map[string]int{} // want `package-level variable cache can change`

// plans is filled at first use.
//
//writ:cache a plan is a function of its type alone
var plans sync.Map

//writ:cache
var unsaidCache sync.Map // want `must say why its answers`

var lock sync.RWMutex

var hook = func() {} // want `package-level variable hook can change`

var err1 error // want `package-level variable err1 can change`

var pointer = &current // want `package-level variable pointer can change` `package-level variable current must not change: its address is taken`

type node struct{ next *node }

var list node // want `package-level variable list can change`

func change() {
	limit = 2            // want `package-level variable limit must not change: assigned to`
	limit++              // want `package-level variable limit must not change: assigned to`
	current.major = 2    // want `package-level variable current must not change: assigned to`
	current.pre[0] = "a" // want `package-level variable current must not change: assigned to`
	names["b"] = 2       // want `package-level variable names must not change: assigned to`
	delete(names, "a")   // want `package-level variable names must not change: delete is called with it`
	plans.Store(1, 2)
	lock.Lock()           // want `package-level variable lock must not change: a method that can change it is called`
	current.bump()        // want `package-level variable current must not change: a method that can change it is called`
	os.Args = nil         // want `package-level variable os.Args must not change: assigned to`
	b.Exported = 1        // want `package-level variable b.Exported must not change: assigned to`
	_ = &limit            // want `package-level variable limit must not change: its address is taken`
	for limit = range 3 { // want `package-level variable limit must not change: assigned to`
	}
	limit := 3
	limit = 4
	_ = &limit
	_ = current.String()
	_ = pattern.MatchString("a")
	v := current
	v.bump()
	_, _, _, _ = errWrapped, text, fine, limit
}
