package canonical

// DecodeStream lets tests hold the short way of decoding against the long one.
func DecodeStream(b []byte, v any) bool { return decodeStream(b, v, false) }

// PlainRun is plainRun.
func PlainRun[T string | []byte](s T) int { return plainRun(s) }
