package b

var Exported = 1
