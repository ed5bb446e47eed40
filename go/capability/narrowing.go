package capability

// Narrowing is a request of which a layer allows a part.
type Narrowing struct {
	Requested Grant `json:"requested"`
	Allowed   Set   `json:"allowed"`
}
