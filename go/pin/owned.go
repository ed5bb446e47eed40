package pin

import (
	"errors"
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// ReadOwned reads a file of the deployment, which no digest can pin and which is trusted by
// who may write it: a plain file that belongs to whoever runs this process or to root, that
// nobody else may write, and that no link leads to. Of a longer file it reads limit+1 bytes.
// The error says in words what is wrong with the file; that of one that is not there is
// fs.ErrNotExist.
func ReadOwned(path string, limit int64) ([]byte, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var st unix.Stat_t
	if err := unix.Fstat(int(f.Fd()), &st); err != nil {
		return nil, err
	}
	switch {
	case st.Mode&unix.S_IFMT != unix.S_IFREG:
		return nil, errors.New("the file is no regular file")
	case st.Uid != 0 && int(st.Uid) != os.Geteuid():
		return nil, errors.New("the file belongs to somebody else")
	case st.Mode&0o022 != 0:
		return nil, errors.New("others than its owner may write the file")
	}
	return io.ReadAll(io.LimitReader(f, limit+1))
}
