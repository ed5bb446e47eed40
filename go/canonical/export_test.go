package canonical

// DecodeStream lets tests hold the short way of decoding against the long one.
func DecodeStream(b []byte, v any) bool { return decodeStream(b, v) }
