// Package wire holds what the two ends of an adapter's connection agree on besides the generated messages: the
// handshake, the descriptors and variables an adapter is started with, the keys of its mutual TLS, the bounds of
// messages, and how calls, refusals and claims are written into messages.
package wire

import "time"

// The protocol and how go-plugin names it.
const (
	// Protocol is the name and version that capabilities list.
	Protocol = "writ.executor.v1"
	// Version is the version that go-plugin negotiates. It rises with the version of the .proto.
	Version = 1
	// Plugin is the name under which go-plugin serves and dispenses the adapter.
	Plugin = "executor"
	// CookieKey and CookieValue let an adapter say that it is not meant to be run by hand. They protect nothing.
	CookieKey   = "WRIT_ADAPTER"
	CookieValue = "writ.executor"
	// HostServicesID is the broker id under which the host serves HostServices.
	HostServicesID = 1
)

// The descriptors that an adapter is started with, besides standard input (/dev/null), output (go-plugin's
// handshake) and error. It has no others.
const (
	// BinaryFD is the sealed memory that the adapter was executed from.
	BinaryFD = 3
	// KeysFD is a pipe that holds the adapter's TLS keys and ends.
	KeysFD = 4
)

// Variables returns the names of the environment variables that an adapter is started with. It has no others.
func Variables() []string {
	return []string{CookieKey, "PLUGIN_MULTIPLEX_GRPC", "PLUGIN_PROTOCOL_VERSIONS", "PLUGIN_UNIX_SOCKET_DIR"}
}

// The bounds of messages. What is larger is refused by the receiver, whoever it is.
const (
	// MaxMessage bounds one message, in bytes.
	MaxMessage = 4 << 20
	// MaxBody bounds one canonical document within a message, in bytes.
	MaxBody = 1 << 20
	// MaxBundle bounds an attempt bundle, in bytes; MaxInline the bundles that Prepare carries. A larger one is read
	// in parts, as an artifact.
	MaxBundle = 8 << 20
	MaxInline = 2 << 20
	// MaxRead bounds what ReadArtifact returns at once, in bytes.
	MaxRead = 1 << 20
	// MaxCheckpoint bounds what Offered returns, in bytes.
	MaxCheckpoint = 64 << 10
	// MaxLog bounds one log message, in bytes.
	MaxLog = 4 << 10
	// MaxText bounds each text of a refusal, in bytes.
	MaxText = 1 << 10
	// MaxHandle bounds an execution handle, in bytes.
	MaxHandle = 256
	// MaxEffects bounds the sub-operations that one claim lists.
	MaxEffects = 256
	// MaxWait bounds one long poll.
	MaxWait = 30 * time.Second
)
