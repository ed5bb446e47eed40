package wire_test

import (
	"bytes"
	"crypto/rand"
	"crypto/tls"
	"errors"
	"net"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	executorv1 "github.com/writ-runtime/writ/go/api/executor/v1"
	"github.com/writ-runtime/writ/go/api/wire"
	"github.com/writ-runtime/writ/go/canonical"
	"github.com/writ-runtime/writ/go/operation"
	"github.com/writ-runtime/writ/go/protocol"
	"github.com/writ-runtime/writ/go/reason"
	"github.com/writ-runtime/writ/go/workorder"
)

func call(t *testing.T) (protocol.Call, []byte) {
	t.Helper()
	r, err := protocol.NewRequest(operation.Start, canonical.Sum([]byte("bundle")), "att_1", "a", "main", protocol.StartParameters{})
	if err != nil {
		t.Fatal(err)
	}
	in, err := r.Intent("writ", "", operation.Reconcilable, "x")
	if err != nil {
		t.Fatal(err)
	}
	raw, err := canonical.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	return protocol.Call{Bundle: r.Bundle, Fence: workorder.Fence{Attempt: "att_1", Generation: 1, Phase: workorder.Live}, Operation: in.Key, Digest: in.Digest}, raw
}

func TestCallsRoundTrip(t *testing.T) {
	c, _ := call(t)
	if got, err := wire.ToCall(wire.FromCall(c)); err != nil || got != c {
		t.Errorf("got %+v, %v", got, err)
	}
	if _, err := wire.ToCall(nil); !reason.Is(err, reason.AdapterProtocol) {
		t.Errorf("no call: %v", err)
	}
	for name, drop := range map[string]func(*executorv1.Call){
		"bundle":    func(m *executorv1.Call) { m.BundleDigest = "" },
		"attempt":   func(m *executorv1.Call) { m.Attempt = "" },
		"fence":     func(m *executorv1.Call) { m.FenceGeneration = 0 },
		"phase":     func(m *executorv1.Call) { m.FencePhase = "open" },
		"operation": func(m *executorv1.Call) { m.OperationKey = "a/b" },
		"digest":    func(m *executorv1.Call) { m.CollisionDigest = "sha256:1" },
	} {
		m := wire.FromCall(c)
		drop(m)
		if _, err := wire.ToCall(m); !reason.Is(err, reason.AdapterProtocol) {
			t.Errorf("without %s: %v", name, err)
		}
	}
}

func TestRequestsBelongToTheirCall(t *testing.T) {
	c, raw := call(t)
	if _, err := wire.DecodeRequest(raw, operation.Start, c); err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func(c *protocol.Call, raw *[]byte, k *operation.Kind){
		"not canonical":   func(_ *protocol.Call, raw *[]byte, _ *operation.Kind) { *raw = append([]byte(" "), *raw...) },
		"another digest":  func(c *protocol.Call, _ *[]byte, _ *operation.Kind) { c.Digest = c.Bundle },
		"another kind":    func(_ *protocol.Call, _ *[]byte, k *operation.Kind) { *k = operation.Collect },
		"another bundle":  func(c *protocol.Call, _ *[]byte, _ *operation.Kind) { c.Bundle = c.Digest },
		"another attempt": func(c *protocol.Call, _ *[]byte, _ *operation.Kind) { c.Fence.Attempt = "att_2" },
		"another purpose": func(c *protocol.Call, _ *[]byte, _ *operation.Kind) { c.Operation = "writ/att_1/a/start/other" },
		"another actor":   func(c *protocol.Call, _ *[]byte, _ *operation.Kind) { c.Operation = "writ/att_1/b/start/main" },
		"too large":       func(_ *protocol.Call, raw *[]byte, _ *operation.Kind) { *raw = make([]byte, wire.MaxBody+1) },
	} {
		c, raw, kind := c, raw, operation.Start
		change(&c, &raw, &kind)
		if _, err := wire.DecodeRequest(raw, kind, c); !reason.Is(err, reason.AdapterProtocol) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestRefusalsTravel(t *testing.T) {
	r := reason.New(reason.KernelStaleFence, "too\x1b[31m late", "here", "stop").Because(errors.New("secret"))
	got, ok := wire.RefusalOf(wire.StatusOf(r))
	if !ok || got.Code != r.Code || got.What != "too�[31m late" || got.Remedy != "stop" || strings.Contains(got.Detail(), "secret") {
		t.Errorf("got %+v", got)
	}
	for _, m := range []*executorv1.Refusal{nil, {Code: "vendor.code", What: "x"}, {Code: string(reason.AdapterFailed)}} {
		if got, ok := wire.ToRefusal(m); ok || got.Code != reason.AdapterProtocol {
			t.Errorf("%v: %v", m, got)
		}
	}
	if got, _ := wire.ToRefusal(&executorv1.Refusal{Code: string(reason.AdapterFailed), What: strings.Repeat("ü", wire.MaxText)}); len(got.What) > wire.MaxText {
		t.Errorf("%d bytes", len(got.What))
	}
	if _, ok := wire.RefusalOf(status.Error(codes.FailedPrecondition, "words only")); ok {
		t.Error("words count as a refusal")
	}
}

func TestClaimsAgreeWithTheirAnswer(t *testing.T) {
	c, _ := call(t)
	result := []byte(`{"handle":"h"}`)
	good := wire.Claim{Kind: wire.ClaimKind, Operation: c.Operation, Digest: c.Digest, Knowledge: operation.Applied, Result: canonical.Sum(result), Effects: []wire.Effect{}}
	for name, tt := range map[string]struct {
		change func(*wire.Claim)
		ok     bool
	}{
		"good":              {func(*wire.Claim) {}, true},
		"another kind":      {func(x *wire.Claim) { x.Kind = "x" }, false},
		"another operation": {func(x *wire.Claim) { x.Operation = "x" }, false},
		"another digest":    {func(x *wire.Claim) { x.Digest = x.Result }, false},
		"another result":    {func(x *wire.Claim) { x.Result = "" }, false},
		"not applied":       {func(x *wire.Claim) { x.Knowledge = operation.NotApplied }, false},
		"too many effects":  {func(x *wire.Claim) { x.Effects = make([]wire.Effect, wire.MaxEffects+1) }, false},
	} {
		claim := good
		tt.change(&claim)
		raw, err := canonical.Marshal(claim)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := wire.DecodeClaim(raw, c, result, nil); (err == nil) != tt.ok || (err != nil && !reason.Is(err, reason.AdapterProtocol)) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Only the two ends of one start can talk to each other.
func TestKeysAreOfOneStart(t *testing.T) {
	hostEnd, raw, err := wire.NewKeys(rand.Reader, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	adapterEnd, err := wire.ReadKeys(bytes.NewReader(raw))
	if err != nil {
		t.Fatal(err)
	}
	other, otherRaw, err := wire.NewKeys(rand.Reader, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	otherAdapter, err := wire.ReadKeys(bytes.NewReader(otherRaw))
	if err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct {
		server, client *tls.Config
		ok             bool
	}{
		"adapter serves host":      {adapterEnd, hostEnd, true},
		"host serves adapter":      {hostEnd, adapterEnd, true},
		"host of another start":    {adapterEnd, other, false},
		"adapter of another start": {hostEnd, otherAdapter, false},
		"own certificate":          {adapterEnd, adapterEnd, false},
		"no certificate":           {adapterEnd, &tls.Config{RootCAs: hostEnd.RootCAs, ServerName: hostEnd.ServerName, MinVersion: tls.VersionTLS13}, false},
	} {
		if err := talk(t, tt.server, tt.client); (err == nil) != tt.ok {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := wire.ReadKeys(strings.NewReader("nothing")); err == nil {
		t.Error("garbage is read as keys")
	}
}

// talk lets one byte pass from a server to a client. A pipe would not do: it has no buffer, and an end that fails
// writes an alert that nobody reads.
func talk(t *testing.T, server, client *tls.Config) error {
	t.Helper()
	l, err := tls.Listen("tcp", "127.0.0.1:0", server)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	served := make(chan error, 1)
	go func() {
		s, err := l.Accept()
		if err == nil {
			_, err = s.Write([]byte("x"))
			_ = s.Close()
		}
		served <- err
	}()
	dialer := &net.Dialer{Timeout: 10 * time.Second}
	c, err := tls.DialWithDialer(dialer, "tcp", l.Addr().String(), client)
	if err == nil {
		_ = c.SetDeadline(time.Now().Add(10 * time.Second))
		_, err = c.Read(make([]byte, 1))
		_ = c.Close()
	}
	return errors.Join(err, <-served)
}
