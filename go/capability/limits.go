package capability

// Limits bound the uses of a grant. Uses are counted by action over the whole attempt. Zero is no limit.
type Limits struct {
	// Calls is the greatest running number of a use: with 3, the first three uses are covered.
	Calls int64 `json:"calls,omitempty"`
	// Bytes is the most that one use may move, in bytes.
	Bytes int64 `json:"bytes,omitempty"`
}

// Intersect returns the stricter of each limit.
func (l Limits) Intersect(other Limits) Limits {
	return Limits{Calls: stricter(l.Calls, other.Calls), Bytes: stricter(l.Bytes, other.Bytes)}
}

// Contains reports whether l allows all that other allows.
func (l Limits) Contains(other Limits) bool {
	return within(other.Calls, l.Calls) && within(other.Bytes, l.Bytes)
}

// satisfies reports whether l gives what a request names. A request that names no limit takes what it gets.
func (l Limits) satisfies(request Limits) bool {
	return (request.Calls == 0 || within(request.Calls, l.Calls)) && (request.Bytes == 0 || within(request.Bytes, l.Bytes))
}

func (l Limits) valid() bool { return l.Calls >= 0 && l.Bytes >= 0 }

func stricter(a, b int64) int64 {
	switch {
	case a == 0:
		return b
	case b == 0:
		return a
	default:
		return min(a, b)
	}
}

func within(limit, ceiling int64) bool { return ceiling == 0 || (limit != 0 && limit <= ceiling) }
