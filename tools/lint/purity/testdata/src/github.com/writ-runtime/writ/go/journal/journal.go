package journal

import (
	"os"
	"time"
)

func f() { _, _ = os.Args, time.Now() }
