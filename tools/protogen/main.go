// Command protogen writes go/api from schemas/proto. Run it from the root of the module, with no arguments:
//
//	go run ./tools/protogen
//
// It needs neither protoc nor network: the compiler and protoc-gen-go are libraries, and protoc-gen-go-grpc is
// built from the module that go.mod pins. A test fails when go/api is stale.
package main

import (
	"context"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
)

// Where the sources lie, and the package of the program that makes the service stubs.
const (
	protoRoot  = "schemas/proto"
	grpcPlugin = "google.golang.org/grpc/cmd/protoc-gen-go-grpc"
)

// Sources are the .proto files of all released versions, relative to protoRoot.
func Sources() []string { return []string{"writ/executor/v1/executor.proto"} }

func main() {
	if err := run(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, "protogen:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	dir, err := os.MkdirTemp("", "protogen")
	if err != nil {
		return fmt.Errorf("make folder: %w", err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	plugin := filepath.Join(dir, "protoc-gen-go-grpc")
	if out, err := exec.CommandContext(ctx, "go", "build", "-o", plugin, grpcPlugin).CombinedOutput(); err != nil {
		return fmt.Errorf("build %s: %w: %s", grpcPlugin, err, out)
	}
	files, err := Generate(ctx, protoRoot, plugin, Sources()...)
	if err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			return fmt.Errorf("make folder: %w", err)
		}
		if err := os.WriteFile(name, files[name], 0o644); err != nil {
			return fmt.Errorf("write %s: %w", name, err)
		}
		fmt.Println(name)
	}
	return nil
}
