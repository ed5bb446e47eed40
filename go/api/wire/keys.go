package wire

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"math/big"
	"time"
)

// serverName is what both certificates are made out to; there is no network name to speak of.
const serverName = "writ.local"

// maxKeys bounds what is read from KeysFD, in bytes, and keeps it within a pipe's buffer.
const maxKeys = 16 << 10

// NewKeys makes the keys of one start: two P-256 key pairs with self-signed certificates, each of which is all that
// the other end trusts. It returns the host's configuration and what the adapter reads from KeysFD. Nothing is
// written anywhere else, and the next start has other keys.
func NewKeys(random io.Reader, now time.Time) (host *tls.Config, adapter []byte, err error) {
	hostCert, err := newCertificate(random, now)
	if err != nil {
		return nil, nil, err
	}
	adapterCert, err := newCertificate(random, now)
	if err != nil {
		return nil, nil, err
	}
	key, err := x509.MarshalPKCS8PrivateKey(adapterCert.PrivateKey)
	if err != nil {
		return nil, nil, fmt.Errorf("encode adapter key: %w", err)
	}
	for _, block := range []pem.Block{
		{Type: "PRIVATE KEY", Bytes: key},
		{Type: "CERTIFICATE", Bytes: adapterCert.Certificate[0]},
		{Type: "CERTIFICATE", Bytes: hostCert.Certificate[0]},
	} {
		adapter = append(adapter, pem.EncodeToMemory(&block)...)
	}
	host, err = mutual(hostCert, adapterCert.Certificate[0])
	return host, adapter, err
}

// ReadKeys reads what NewKeys made for the adapter.
func ReadKeys(r io.Reader) (*tls.Config, error) {
	raw, err := io.ReadAll(io.LimitReader(r, maxKeys))
	if err != nil {
		return nil, fmt.Errorf("read adapter keys: %w", err)
	}
	var blocks [3][]byte
	for i := range blocks {
		block, rest := pem.Decode(raw)
		if block == nil {
			return nil, errors.New("read adapter keys: this is not what a host writes")
		}
		blocks[i], raw = block.Bytes, rest
	}
	key, err := x509.ParsePKCS8PrivateKey(blocks[0])
	if err != nil {
		return nil, fmt.Errorf("read adapter keys: %w", err)
	}
	return mutual(tls.Certificate{Certificate: [][]byte{blocks[1]}, PrivateKey: key}, blocks[2])
}

// mutual is the configuration of one end. Each end is a server too: the adapter of Executor, the host of
// HostServices.
func mutual(own tls.Certificate, peer []byte) (*tls.Config, error) {
	cert, err := x509.ParseCertificate(peer)
	if err != nil {
		return nil, fmt.Errorf("parse peer certificate: %w", err)
	}
	pool := x509.NewCertPool()
	pool.AddCert(cert)
	return &tls.Config{
		Certificates: []tls.Certificate{own}, RootCAs: pool, ClientCAs: pool, ServerName: serverName,
		ClientAuth: tls.RequireAndVerifyClientCert, MinVersion: tls.VersionTLS13,
		// One connection a start: tickets would only cost time.
		SessionTicketsDisabled: true,
	}, nil
}

func newCertificate(random io.Reader, now time.Time) (tls.Certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), random)
	if err != nil {
		return tls.Certificate{}, fmt.Errorf("make key: %w", err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: serverName}, DNSNames: []string{serverName},
		// An adapter lives as long as its host at most; a clock that is set back in between must not end it.
		NotBefore: now.Add(-24 * time.Hour), NotAfter: now.Add(10 * 365 * 24 * time.Hour),
		KeyUsage:    x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth},
	}
	der, err := x509.CreateCertificate(random, template, template, key.Public(), key)
	if err != nil {
		return tls.Certificate{}, fmt.Errorf("make certificate: %w", err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, nil
}
