package ledger

type Permit struct{ seal *int }

func mint() Permit { return Permit{} }

func Mint() (Permit, error) { return mint(), nil }
