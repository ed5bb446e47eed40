//go:build tools

package main

// Keeps the program that main builds in go.mod.
import _ "google.golang.org/grpc/cmd/protoc-gen-go-grpc"
