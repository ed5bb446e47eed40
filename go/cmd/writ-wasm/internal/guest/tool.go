// Package guest compiles a tool and runs it once, with the clock, random source, memory and file system that make
// equal inputs give equal outputs.
package guest

import (
	"context"
	"fmt"
	"slices"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/imports/wasi_snapshot_preview1"
	"golang.org/x/sys/unix"

	"github.com/writ-runtime/writ/go/environment/wasm/worker/wire"
	"github.com/writ-runtime/writ/go/reason"
)

// Tool is a compiled tool. All machine code that it will ever need exists.
type Tool struct {
	runtime  wazero.Runtime
	compiled wazero.CompiledModule
	imports  []string
	limits   wire.Limits
}

// Compile compiles the module and everything it imports. cacheDir is a directory of compiled code to use and to
// fill, or ""; a cache that is damaged or full costs time and nothing else. It fails with environment.limit_memory
// when the tool needs more memory than the limit at its start, and with environment.unsupported when it is no module,
// is no WASI command, or imports something else than wasi_snapshot_preview1.
func Compile(ctx context.Context, module []byte, limits wire.Limits, cacheDir string) (*Tool, error) {
	if cacheDir != "" {
		if err := checkPrivate(cacheDir); err != nil {
			return nil, err
		}
	}
	t, err := compile(ctx, module, limits, cacheDir)
	if err != nil && cacheDir != "" {
		if plain, again := compile(ctx, module, limits, ""); again == nil {
			return plain, nil
		}
	}
	return t, err
}

func compile(ctx context.Context, module []byte, limits wire.Limits, cacheDir string) (*Tool, error) {
	config := wazero.NewRuntimeConfigCompiler().WithCloseOnContextDone(true)
	if cacheDir != "" {
		cache, err := wazero.NewCompilationCacheWithDir(cacheDir)
		if err != nil {
			return nil, fmt.Errorf("open cache of compiled code: %w", err)
		}
		config = config.WithCompilationCache(cache)
	}
	t := &Tool{runtime: wazero.NewRuntimeWithConfig(ctx, config), limits: limits}
	if _, err := wasi_snapshot_preview1.Instantiate(ctx, t.runtime); err != nil {
		return nil, fmt.Errorf("compile WASI: %w", err)
	}
	compiled, err := t.runtime.CompileModule(ctx, module)
	if err != nil {
		return nil, unusable("the tool is no WebAssembly module that this worker can compile: " + firstLine(err.Error()))
	}
	t.compiled = compiled
	if err := t.check(); err != nil {
		return nil, err
	}
	return t, nil
}

// checkPrivate refuses a cache that others may write to: what lies in it is run as machine code. It runs inside the
// confinement, but where the tool was pinned by digest, compiled code is trusted for where it lies.
func checkPrivate(dir string) error {
	var st unix.Stat_t
	if err := unix.Stat(dir, &st); err != nil {
		return fmt.Errorf("cache of compiled code %s: %w", dir, err)
	}
	if st.Mode&unix.S_IFMT != unix.S_IFDIR || int(st.Uid) != unix.Getuid() || st.Mode&0o022 != 0 {
		return reason.New(reason.EnvironmentUnsupported, "the cache of compiled code is no directory of this user alone", dir, "give it mode 0700, or remove it")
	}
	return nil
}

func (t *Tool) check() error {
	for _, f := range t.compiled.ImportedFunctions() {
		module, name, _ := f.Import()
		if module != wasi_snapshot_preview1.ModuleName {
			return unusable(fmt.Sprintf("the tool imports %s.%s", module, name))
		}
		if !slices.Contains(t.imports, module) {
			t.imports = append(t.imports, module)
		}
	}
	if len(t.compiled.ImportedMemories()) > 0 {
		return unusable("the tool imports its memory")
	}
	if _, ok := t.compiled.ExportedFunctions()["_start"]; !ok {
		return unusable("the tool exports no _start, so it is no WASI command")
	}
	for _, m := range t.compiled.ExportedMemories() {
		if int64(m.Min()) > t.limits.MemoryPages {
			return reason.New(reason.EnvironmentLimitMemory, fmt.Sprintf("the tool needs %d bytes of memory to begin with, its limit is %d", int64(m.Min())<<16, t.limits.MemoryPages<<16),
				"environment.limits.memory_bytes", "raise the limit in the work order")
		}
	}
	return nil
}

// Imports returns the modules from which the tool imports.
func (t *Tool) Imports() []string { return slices.Clone(t.imports) }

func unusable(what string) error {
	return reason.New(reason.EnvironmentUnsupported, what, "tool", "build the tool as a WASI preview 1 command (for Go: GOOS=wasip1 GOARCH=wasm)")
}
