package pin

import (
	"errors"
	"io"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"

	"github.com/writ-runtime/writ/go/schema"
)

// LoadOwned reads a document of the deployment, see ReadOwned, into what its kind is decoded
// to. found is false where there is no such file. A file that cannot be trusted is refused
// by refuse; a document that is not what its kind says by a *reason.Refusal.
func LoadOwned(path, kind string, refuse func(what, where, remedy string) error, into any) (found bool, err error) {
	b, err := ReadOwned(path, schema.MaxDocumentBytes)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, refuse(err.Error(), path, "make it a plain file of the user who runs Writ, with mode 0600")
	}
	registry, err := schema.Open()
	if err != nil {
		return false, err
	}
	doc, err := registry.Load(path, b, kind)
	if err != nil {
		return false, err
	}
	return true, doc.Decode(into)
}

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
