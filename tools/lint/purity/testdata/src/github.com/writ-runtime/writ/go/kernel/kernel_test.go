package kernel

import "os"

var _ = os.Args
