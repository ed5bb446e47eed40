package kernel

import (
	_ "crypto/rand" // want `kernel is a pure package: it may not import crypto/rand`
	"crypto/sha256"
	_ "math/rand/v2" // want `it may not import math/rand/v2`
	_ "net/http"     // want `it may not import net/http`
	_ "net/url"
	_ "os/exec" // want `it may not import os/exec`
	"time"
)

func f(t time.Time) time.Duration {
	_ = sha256.New()
	now := time.Now           // want `it may not use time.Now`
	<-time.After(time.Second) // want `it may not use time.After`
	_ = time.Since(t)         // want `it may not use time.Since`
	_ = t.After(t)
	return now().Sub(t)
}
