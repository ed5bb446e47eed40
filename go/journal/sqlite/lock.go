package sqlite

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/writ-runtime/writ/go/reason"
)

// lockName is the writer lock's file in the state folder. It is never removed: a lock
// on a removed file would exclude nobody.
const lockName = "writer.lock"

// maxActivity bounds what is shown of another process, in bytes.
const maxActivity = 200

// writerLock is the right to append: an exclusive flock that the kernel releases when
// the process dies, however it dies.
type writerLock struct{ file *os.File }

// holder is what the lock's file says of who holds it. It is a courtesy to people; the
// lock itself is the kernel's.
type holder struct {
	PID      int    `json:"pid"`
	Activity string `json:"activity"`
}

// lockWriter takes the lock of the state folder without waiting, or refuses with
// journal.locked.
func lockWriter(dir, activity string) (*writerLock, error) {
	path := filepath.Join(dir, lockName)
	// Between opening and locking somebody may have replaced the file; then the lock is
	// on a file that nobody else will look at.
	for range 8 {
		f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|unix.O_NOFOLLOW, 0o600)
		if err != nil {
			return nil, refuseOS(err, "the writer lock cannot be taken", path)
		}
		if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
			who := readHolder(f)
			_ = f.Close()
			if errors.Is(err, unix.EWOULDBLOCK) {
				return nil, locked(who, path)
			}
			return nil, refuseOS(err, "the writer lock cannot be taken", path)
		}
		ours, errOurs := f.Stat()
		theirs, errTheirs := os.Stat(path)
		if errOurs != nil || errTheirs != nil || !os.SameFile(ours, theirs) {
			_ = f.Close()
			continue
		}
		l := &writerLock{file: f}
		if err := l.sign(activity); err != nil {
			_ = l.release()
			return nil, refuseOS(err, "the writer lock cannot be taken", path)
		}
		return l, nil
	}
	return nil, refuseOS(errors.New("the lock's file keeps being replaced"), "the writer lock cannot be taken", path)
}

func (l *writerLock) sign(activity string) error {
	if len(activity) > maxActivity {
		activity = activity[:maxActivity]
	}
	b, err := json.Marshal(holder{PID: os.Getpid(), Activity: activity})
	if err != nil {
		return err
	}
	if err := l.file.Truncate(0); err != nil {
		return err
	}
	_, err = l.file.WriteAt(append(b, '\n'), 0)
	return err
}

// release gives the lock back. The file stays, empty of a name.
func (l *writerLock) release() error {
	_ = l.file.Truncate(0)
	return l.file.Close()
}

func readHolder(f *os.File) holder {
	var h holder
	b, err := io.ReadAll(io.NewSectionReader(f, 0, 4096))
	if err != nil || json.Unmarshal(b, &h) != nil {
		return holder{}
	}
	return h
}

func locked(h holder, path string) *reason.Refusal {
	who := "another process is writing here"
	if h.PID > 0 {
		who = fmt.Sprintf("process %d is writing here", h.PID)
	}
	if h.Activity != "" {
		who += fmt.Sprintf(": %q", h.Activity)
	}
	return reason.New(reason.JournalLocked, who, path,
		"wait for it to end; reading still works, as with `writ status`")
}
