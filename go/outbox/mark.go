package outbox

import (
	"errors"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"

	"github.com/writ-runtime/writ/go/beneath"
	"github.com/writ-runtime/writ/go/canonical"
	"github.com/writ-runtime/writ/go/operation"
	"github.com/writ-runtime/writ/go/reason"
)

// marksFolder is where marks stand in a state folder.
const marksFolder = "unsent"

// mark says of one operation that nobody can have seen anything of it. It is durable before the
// intent is, and it goes, durably, before the one step by which the effect appears. While it
// stands, what is absent at the destination was never there; without it, somebody may have
// taken it away, and to send it again might be to send it twice.
type mark struct {
	hands hands
	state string
	name  string
}

func newMark(h hands, state string, key operation.Key) mark {
	return mark{hands: h, state: state, name: canonical.Sum([]byte(key)).Hex()}
}

// set makes the mark.
func (m mark) set() error {
	dir, err := m.hands.stateFolder(m.state, marksFolder)
	if err != nil {
		return err
	}
	defer dir.Close()
	err = m.hands.Do("mark", func() error {
		f, err := beneath.Create(dir, m.name)
		if err != nil {
			return err
		}
		return f.Close()
	})
	if err == nil || errors.Is(err, fs.ErrExist) {
		err = m.hands.Do("sync", dir.Sync)
	}
	if err != nil {
		return refuse(err, "what is not sent yet cannot be marked", m.state)
	}
	return nil
}

// stands reports whether the mark is there.
func (m mark) stands() (bool, error) {
	dir, err := m.folder()
	if dir == nil {
		return false, err
	}
	defer dir.Close()
	f, err := beneath.OpenFile(dir, m.name)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, refuse(err, "whether anything was sent cannot be read", m.state)
	}
	return true, f.Close()
}

// spend removes the mark. Without an error the effect may appear from here on. With one it did not appear now, and
// what is returned says whether it did before: nobody can tell where the mark was gone already.
func (m mark) spend() (operation.Knowledge, error) {
	dir, err := m.folder()
	if err != nil {
		return operation.NotApplied, err
	}
	if dir == nil {
		return operation.Unknown, vanished(m.name)
	}
	defer dir.Close()
	err = m.hands.Do("spend", func() error { return unix.Unlinkat(int(dir.Fd()), m.name, 0) })
	if errors.Is(err, fs.ErrNotExist) {
		return operation.Unknown, vanished(m.name)
	}
	if err == nil {
		err = m.hands.Do("sync", dir.Sync)
	}
	if err != nil {
		return operation.NotApplied, refuse(err, "that it is being sent cannot be made durable", m.state)
	}
	return operation.NotApplied, nil
}

// absent is the outcome where nothing that was made for the sending is at the destination. While the mark stands it did
// not take place, because of why; without the mark nobody can tell.
func (m mark) absent(name string, why error) operation.Outcome {
	stands, err := m.stands()
	switch {
	case err != nil:
		return operation.Refused(operation.Unknown, err)
	case !stands:
		return operation.Refused(operation.Unknown, vanished(name))
	}
	return operation.Refused(operation.NotApplied, why)
}

// forget removes the mark of what came to its end. One that stays says nothing wrong.
func (m mark) forget() {
	if dir, _ := m.folder(); dir != nil {
		defer dir.Close()
		_ = m.hands.Do("unlink", func() error { return unix.Unlinkat(int(dir.Fd()), m.name, 0) })
	}
}

// folder opens the folder of the marks, nil where there is none.
func (m mark) folder() (*os.File, error) {
	state, err := os.Open(m.state)
	if err != nil {
		return nil, refuse(err, "the state folder cannot be opened", m.state)
	}
	defer state.Close()
	dir, err := beneath.Open(state, marksFolder)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, refuse(err, "whether anything was sent cannot be read", m.state)
	}
	return dir, nil
}

// vanished says that what is absent may have been there.
func vanished(name string) error {
	return reason.New(reason.OutboxVanished, "nothing of it is at the destination now, and it may have been there: it was about to appear", name,
		"find out whether somebody took it away, and say what you found with resolve-ambiguous-effect")
}
