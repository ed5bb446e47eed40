package a

func init() {} // want `no init\(\)`

type t struct{}

func (t) init() {}
