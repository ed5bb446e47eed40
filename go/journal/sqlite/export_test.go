package sqlite

// At has f called at every point of a recovery at which a crash leaves other files behind.
func (r *Recovery) At(f func(step string)) { r.at = f }
