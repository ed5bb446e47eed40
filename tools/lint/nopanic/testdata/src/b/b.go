package main

func main() { panic("main") }
