// Package capability says what an attempt may do: registered actions over scopes, the lattice of modes, and the
// intersection of the answers of all layers. It is pure, and it is the only place where authority is computed:
// policies, brokers and environments answer with sets, and nothing but Resolve puts the sets together.
//
// A grant denotes the uses it covers: resource × destination × running number of the use × bytes. Uses are
// counted by action over the whole attempt, so a grant with three calls covers the first three uses of its action
// whatever other grants there are. That makes intersection pointwise: splitting a grant never multiplies its
// limits, and no order of layers gives more than another.
package capability
