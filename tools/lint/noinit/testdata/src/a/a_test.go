package a

func init() {}
