package workorder

import "math"

// Amounts is how much there is of each unit that a budget counts: reserved, used or left.
// Retries and repairs are no units of their own: a retry reserves a budget of its own, and
// a repair is a call.
type Amounts struct {
	Calls      int64 `json:"calls"`
	Tokens     int64 `json:"tokens"`
	WallMillis int64 `json:"wall_ms"`
	// Money is nil where no money is counted, which is not the same as none of it.
	Money *Money `json:"money,omitempty"`
}

// Amounts is what the budget reserves of each unit.
func (b Budget) Amounts() Amounts {
	return Amounts{Calls: b.Calls, Tokens: b.Tokens, WallMillis: b.WallMillis, Money: b.Money}
}

// Plus adds unit by unit; a sum that no integer holds is the largest. Money counts where
// either has it. Preconditions: both are of one currency, see Money.Like.
func (a Amounts) Plus(b Amounts) Amounts { return a.with(b, plus) }

// Less subtracts unit by unit, down to zero.
func (a Amounts) Less(b Amounts) Amounts {
	return a.with(b, func(x, y int64) int64 { return max(0, x-y) })
}

func plus(x, y int64) int64 {
	if x > math.MaxInt64-y {
		return math.MaxInt64
	}
	return x + y
}

func (a Amounts) with(b Amounts, f func(x, y int64) int64) Amounts {
	sum := Amounts{Calls: f(a.Calls, b.Calls), Tokens: f(a.Tokens, b.Tokens), WallMillis: f(a.WallMillis, b.WallMillis)}
	like := a.Money
	if like == nil {
		like = b.Money
	}
	if like != nil {
		sum.Money = &Money{Amount: f(a.Money.amount(), b.Money.amount()), Currency: like.Currency, Scale: like.Scale}
	}
	return sum
}

// Like reports whether amounts of both can be added: they are of one currency and scale.
// Nothing is converted.
func (m Money) Like(other Money) bool { return m.Currency == other.Currency && m.Scale == other.Scale }

func (m *Money) amount() int64 {
	if m == nil {
		return 0
	}
	return m.Amount
}

// Ceiling is what the amounts of many may come to together. A unit that it leaves out has
// no ceiling; zero lets nothing through.
type Ceiling struct {
	Calls      *int64 `json:"calls,omitempty"`
	Tokens     *int64 `json:"tokens,omitempty"`
	WallMillis *int64 `json:"wall_ms,omitempty"`
	Money      *Money `json:"money,omitempty"`
}

// Passed returns the name of the first unit of which more is asked than is left under the
// ceiling beside what is taken; empty if there is none. A unit of which nothing is asked
// passes no ceiling, however much is taken.
func (c Ceiling) Passed(taken, asked Amounts) string {
	var money *int64
	if c.Money != nil {
		money = &c.Money.Amount
	}
	for _, u := range []struct {
		name         string
		ceiling      *int64
		taken, asked int64
	}{
		{"calls", c.Calls, taken.Calls, asked.Calls},
		{"tokens", c.Tokens, taken.Tokens, asked.Tokens},
		{"time", c.WallMillis, taken.WallMillis, asked.WallMillis},
		{"money", money, taken.Money.amount(), asked.Money.amount()},
	} {
		if u.ceiling != nil && u.asked > 0 && plus(u.taken, u.asked) > *u.ceiling {
			return u.name
		}
	}
	return ""
}
