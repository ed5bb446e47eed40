//go:debug containermaxprocs=0
//go:debug updatemaxprocs=0

// Command writ-wasm is the confined worker that runs one WebAssembly tool. writ starts it from sealed memory with
// an empty environment; it takes no arguments and is of no use by hand.
//
// It measures itself, receives and compiles the tool, takes every right away from itself, measures what it has
// left, reports that, and waits. Only when the host has compared the report do inputs come and does the tool run.
package main

import (
	"context"
	"fmt"
	"math"
	"os"
	"os/signal"
	"runtime"
	"runtime/debug"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/writ-runtime/writ/go/cmd/writ-wasm/internal/measure"
	"github.com/writ-runtime/writ/go/cmd/writ-wasm/internal/serve"
	"github.com/writ-runtime/writ/go/environment/wasm/worker/wire"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintf(os.Stderr, "writ-wasm: %v\n", err)
		os.Exit(1)
	}
}

func run() error {
	// One guest and its timer, and the reader of the socket: two threads of Go code are enough.
	runtime.GOMAXPROCS(2)
	// Go's scheduler keeps files of the host's cgroup open to follow its limits, unless the directives above reached
	// the linker. A worker has no open file beside the registered ones.
	if err := unix.CloseRange(wire.FDLock+1, math.MaxUint32, 0); err != nil {
		return fmt.Errorf("close descriptors above %d: %w", wire.FDLock, err)
	}
	debug.SetMaxThreads(wire.ProcessThreads)
	// The runtime makes its poller at the first timer. Once confined it could not.
	time.AfterFunc(time.Hour, func() {}).Stop()
	self, err := measure.Begin()
	if err != nil {
		return err
	}
	cpu := make(chan os.Signal, 1)
	signal.Notify(cpu, syscall.SIGXCPU)
	socket := os.NewFile(wire.FDSocket, "host")
	// The host's end closes when the host is gone, however it went; then nobody is left to work for.
	return serve.New(socket, self, cpu).Serve(context.Background(), func() { os.Exit(0) })
}
