// Command badadapter is an adapter that misbehaves in the way its own name says: tests pin the one binary under the
// name of a misbehaviour, and a pinned binary is started under its name.
package main

import (
	_ "embed"
	"fmt"
	"os"
	"os/signal"

	hclog "github.com/hashicorp/go-hclog"
	plugin "github.com/hashicorp/go-plugin"

	"github.com/writ-runtime/writ/go/api/wire"
	"github.com/writ-runtime/writ/go/sdk"
)

//go:embed manifest.json
var manifest []byte

func main() {
	mode, inherits := os.Args[0], ""
	if mode == "look" {
		inherits = descriptors()
	}
	switch mode {
	case "silent":
		forever()
	case "dies":
		fmt.Fprintln(os.Stderr, "the vendor forgot something\x1b[31m")
		os.Exit(3)
	case "garbage":
		fmt.Println("hello")
		for {
			fmt.Println("hello again")
		}
	case "longline":
		for {
			fmt.Print("hello")
		}
	case "oldversion":
		plugin.Serve(&plugin.ServeConfig{
			HandshakeConfig:  plugin.HandshakeConfig{MagicCookieKey: wire.CookieKey, MagicCookieValue: wire.CookieValue},
			VersionedPlugins: map[int]plugin.PluginSet{wire.Version + 1: {wire.Plugin: &raw{}}},
			GRPCServer:       plugin.DefaultGRPCServer,
			Logger:           hclog.NewNullLogger(),
		})
	case "nokeys":
		serveRaw(&raw{mode: mode}, nil)
	case "stderrflood":
		go func() {
			for {
				fmt.Fprintln(os.Stderr, "a line that nobody wants to read, again and again and again")
			}
		}()
		sdk.Serve(polite{mode: mode}, sdk.Info{Name: mode, Version: "1", Capabilities: manifest})
	case "othermanifest":
		sdk.Serve(polite{mode: mode}, sdk.Info{Name: mode, Version: "1", Capabilities: []byte(`{"kind":"another"}`)})
	case "foreignfence", "foreignbundle", "foreignattempt", "foreignparent", "foreignkey", "otherdigest", "nocall",
		"lieclaim", "badclaim", "hugeanswer", "badcode", "liereport", "twoanswers", "otherhandle":
		serveRaw(&raw{mode: mode}, inherited)
	default:
		sdk.Serve(polite{mode: mode, inherits: inherits}, sdk.Info{Name: mode, Version: "1", Capabilities: manifest})
	}
}

// forever keeps the process without using it up.
func forever() {
	c := make(chan os.Signal, 1)
	signal.Notify(c, os.Interrupt)
	for {
		<-c
	}
}
