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
	// Namespace is the process namespace in which PID counts.
	Namespace string `json:"namespace"`
}

// Writer is who may append to a journal, as far as a reader can tell without getting in the way.
type Writer struct {
	// Known is false where nobody can tell: the lock belongs to another user or process namespace.
	Known bool `json:"known"`
	// PID is the process that holds the lock, 0 where none does; Activity is what it says it does.
	PID      int    `json:"pid"`
	Activity string `json:"activity"`
}

// FindWriter looks who holds the writer lock of a state folder. It takes no lock, which would keep a writer
// out: it looks whether the process that signed the lock's file still has it open.
func FindWriter(dir string) Writer {
	f, err := os.OpenFile(filepath.Join(dir, lockName), os.O_RDONLY|unix.O_NOFOLLOW, 0)
	if errors.Is(err, os.ErrNotExist) {
		return Writer{Known: true}
	}
	if err != nil {
		return Writer{}
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return Writer{}
	}
	if info.Size() == 0 {
		return Writer{Known: true} // It was given back.
	}
	h := readHolder(f)
	if h.PID <= 0 || h.Namespace == "" || h.Namespace != processes() {
		return Writer{}
	}
	open := fmt.Sprintf("/proc/%d/fd", h.PID)
	names, err := os.ReadDir(open)
	if errors.Is(err, os.ErrNotExist) {
		return Writer{Known: true}
	}
	if err != nil {
		return Writer{}
	}
	for _, n := range names {
		if theirs, err := os.Stat(filepath.Join(open, n.Name())); err == nil && os.SameFile(info, theirs) {
			return Writer{Known: true, PID: h.PID, Activity: h.Activity}
		}
	}
	return Writer{Known: true}
}

// processes names the process namespace that this process is in, empty where that cannot be read.
func processes() string {
	name, _ := os.Readlink("/proc/self/ns/pid")
	return name
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
	b, err := json.Marshal(holder{PID: os.Getpid(), Activity: activity, Namespace: processes()})
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
