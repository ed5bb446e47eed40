package capability

// Request is one grant that a work order asks for.
type Request struct {
	Grant
	// Required says that the work cannot be done without it: an attempt is refused before it starts when the
	// request is not met whole. What is not required may be narrowed or left out.
	Required bool `json:"required"`
	// Why is the author's own sentence, shown in explanations and trusted for nothing.
	Why string `json:"why,omitempty"`
}
