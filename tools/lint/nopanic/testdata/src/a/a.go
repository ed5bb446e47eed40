package a

func f(bad bool) {
	if bad {
		panic("x") // want `no panic outside package main`
	}
	panic := func(string) {}
	panic("a function of our own")
}

func must() {
	defer (panic)(nil) // want `no panic outside package main`
}
