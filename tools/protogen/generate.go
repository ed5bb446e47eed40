package main

import (
	"bytes"
	"context"
	"fmt"
	"os/exec"
	"path"
	"strings"

	"github.com/bufbuild/protocompile"
	"google.golang.org/protobuf/cmd/protoc-gen-go/internal_gengo"
	"google.golang.org/protobuf/compiler/protogen"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/pluginpb"
)

// module is what the paths of generated packages are relative to.
const module = "github.com/writ-runtime/writ"

// Generate compiles the given .proto files, found under root, and returns the Go files made from them by their path
// in the module. grpcPlugin is the built protoc-gen-go-grpc; protoc itself is not used.
func Generate(ctx context.Context, root, grpcPlugin string, files ...string) (map[string][]byte, error) {
	request, err := compile(ctx, root, files)
	if err != nil {
		return nil, err
	}
	messages, err := messages(request)
	if err != nil {
		return nil, err
	}
	services, err := services(ctx, grpcPlugin, request)
	if err != nil {
		return nil, err
	}
	out := map[string][]byte{}
	for _, response := range []*pluginpb.CodeGeneratorResponse{messages, services} {
		if response.Error != nil {
			return nil, fmt.Errorf("generate: %s", response.GetError())
		}
		for _, f := range response.File {
			name, ok := strings.CutPrefix(f.GetName(), module+"/")
			if !ok || path.Clean(name) != name {
				return nil, fmt.Errorf("generate: %s lies outside the module", f.GetName())
			}
			out[name] = []byte(f.GetContent())
		}
	}
	return out, nil
}

// compile makes the request that protoc would make for its plugins.
func compile(ctx context.Context, root string, files []string) (*pluginpb.CodeGeneratorRequest, error) {
	compiler := protocompile.Compiler{
		Resolver:       protocompile.WithStandardImports(&protocompile.SourceResolver{ImportPaths: []string{root}}),
		SourceInfoMode: protocompile.SourceInfoStandard,
	}
	compiled, err := compiler.Compile(ctx, files...)
	if err != nil {
		return nil, fmt.Errorf("compile: %w", err)
	}
	request := &pluginpb.CodeGeneratorRequest{FileToGenerate: files}
	seen := map[string]bool{}
	for _, f := range compiled {
		addFile(request, seen, f)
	}
	return request, nil
}

// addFile adds a file after everything it imports, as plugins demand.
func addFile(request *pluginpb.CodeGeneratorRequest, seen map[string]bool, f protoreflect.FileDescriptor) {
	if seen[f.Path()] {
		return
	}
	seen[f.Path()] = true
	for i := range f.Imports().Len() {
		addFile(request, seen, f.Imports().Get(i).FileDescriptor)
	}
	var descriptor *descriptorpb.FileDescriptorProto
	if holder, ok := f.(interface {
		FileDescriptorProto() *descriptorpb.FileDescriptorProto
	}); ok {
		descriptor = holder.FileDescriptorProto() // with the comments
	} else {
		descriptor = protodesc.ToFileDescriptorProto(f)
	}
	request.ProtoFile = append(request.ProtoFile, descriptor)
}

// messages runs protoc-gen-go, which is a library.
func messages(request *pluginpb.CodeGeneratorRequest) (*pluginpb.CodeGeneratorResponse, error) {
	plugin, err := protogen.Options{}.New(request)
	if err != nil {
		return nil, fmt.Errorf("protoc-gen-go: %w", err)
	}
	for _, f := range plugin.Files {
		if f.Generate {
			internal_gengo.GenerateFile(plugin, f)
		}
	}
	return plugin.Response(), nil
}

// services runs protoc-gen-go-grpc, which is only a program.
func services(ctx context.Context, program string, request *pluginpb.CodeGeneratorRequest) (*pluginpb.CodeGeneratorResponse, error) {
	in, err := proto.Marshal(request)
	if err != nil {
		return nil, fmt.Errorf("protoc-gen-go-grpc: %w", err)
	}
	var stdout, stderr bytes.Buffer
	cmd := exec.CommandContext(ctx, program)
	cmd.Env = []string{}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(in), &stdout, &stderr
	if err := cmd.Run(); err != nil {
		return nil, fmt.Errorf("protoc-gen-go-grpc: %w: %s", err, stderr.String())
	}
	response := new(pluginpb.CodeGeneratorResponse)
	if err := proto.Unmarshal(stdout.Bytes(), response); err != nil {
		return nil, fmt.Errorf("protoc-gen-go-grpc: %w", err)
	}
	return response, nil
}
