package retention

// WithSteps has at called before and after every step that changes something.
func (s *Store) WithSteps(at func(step string) error) *Store {
	c := *s
	c.hands.At = at
	return &c
}
