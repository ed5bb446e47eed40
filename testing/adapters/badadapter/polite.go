package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/writ-runtime/writ/go/sdk"
)

// polite misbehaves within the sdk.
type polite struct {
	sdk.Base
	mode string
	// inherits lists the descriptors that the process was started with.
	inherits string
}

// Prepare crashes, hangs, floods, or shows what the process was started with.
func (a polite) Prepare(ctx context.Context, h sdk.Host, in sdk.Prepare) (sdk.Prepared, error) {
	switch a.mode {
	case "crashprepare":
		fmt.Fprintln(os.Stderr, "crashing")
		os.Exit(4)
	case "hangprepare":
		forever()
	case "plainerror":
		return sdk.Prepared{}, errors.New("something of its own")
	case "logflood":
		for i := range 3000 {
			h.Log(ctx, sdk.LevelInfo, fmt.Sprint(i, strings.Repeat("\x1b", 10)))
		}
	case "look":
		h.Log(ctx, sdk.LevelInfo, "env "+variables())
		h.Log(ctx, sdk.LevelInfo, "inherits "+a.inherits)
		h.Log(ctx, sdk.LevelInfo, "holds "+descriptors())
		dir, _ := os.Getwd()
		h.Log(ctx, sdk.LevelInfo, "cwd "+dir)
	}
	return a.Base.Prepare(ctx, h, in)
}

// Start crashes before or after its launch, lies about it, or launches something else.
func (a polite) Start(ctx context.Context, h sdk.Host, in sdk.Start) (sdk.Started, error) {
	switch a.mode {
	case "crashbefore":
		os.Exit(5)
	case "stealoffer":
		_, err := h.Offered(ctx)
		return sdk.Started{}, err
	case "reaches":
		reach(ctx, h, in)
	case "liestart":
		return sdk.Started{}, nil
	case "otherlaunch":
		l := in.Bundle.Launch()
		l.Parameters.Arguments = append(l.Parameters.Arguments, "--more")
		_, err := h.Launch(ctx, l)
		return sdk.Started{}, err
	}
	out, err := a.Base.Start(ctx, h, in)
	switch a.mode {
	case "crashafter", "crashtwice":
		os.Exit(6)
	case "denystart":
		return sdk.Started{}, sdk.Unsupported("what it has just done", "")
	}
	return out, err
}

// Reconcile lies, or crashes once more.
func (a polite) Reconcile(ctx context.Context, h sdk.Host, in sdk.Reconcile) (sdk.Reconciled, error) {
	if a.mode == "crashtwice" {
		os.Exit(7)
	}
	return a.Base.Reconcile(ctx, h, in)
}

func variables() string {
	var names []string
	for _, v := range os.Environ() {
		name, _, _ := strings.Cut(v, "=")
		names = append(names, name)
	}
	slices.Sort(names)
	return strings.Join(names, " ")
}

// descriptors lists what the process holds open, without what its own Go runtime opened: its limits and its poller.
func descriptors() string {
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return err.Error()
	}
	var names []string
	for _, e := range entries {
		target, err := os.Readlink("/proc/self/fd/" + e.Name())
		if err != nil {
			continue // the listing's own
		}
		kind, _, _ := strings.Cut(target, ":")
		if strings.HasPrefix(target, "/sys/fs/cgroup") || kind == "anon_inode" {
			continue
		}
		names = append(names, e.Name()+"="+kind)
	}
	return strings.Join(names, " ")
}
