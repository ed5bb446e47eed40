package capability

// Effective is what an attempt may do: the intersection of every layer, the mode and the requests.
type Effective struct {
	// Mode is the mode that was asked for. Nothing in Resolve raises or lowers it.
	Mode   Mode `json:"mode"`
	Grants Set  `json:"grants"`
	// Omitted are the optional requests that were not met whole, with the reason.
	Omitted []Denial `json:"omitted,omitempty"`
}
