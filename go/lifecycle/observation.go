package lifecycle

// Observation is a reading of one clock. Time enters decisions and the journal only so.
type Observation struct {
	// Domain names the clock; readings of different domains are never compared.
	Domain string `json:"domain"`
	// UnixMilli is the reading in milliseconds since 1970-01-01 UTC.
	UnixMilli int64 `json:"unix_ms"`
}

// Reached reports whether o is a reading of the same clock as t, and not before it.
func (o Observation) Reached(t Observation) bool {
	return o.Domain == t.Domain && o.UnixMilli >= t.UnixMilli
}
