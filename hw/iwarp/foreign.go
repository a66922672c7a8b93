package iwarp

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"

	"godat/hw/iwarp/wire"
)

// What peers of other protocols speak, and what mends that.
const (
	spokeHTTP   = "a peer sent a request of HTTP to this port, which is iWARP's: give that client of HTTP the port that it wants"
	spokeTLS    = "a peer began TLS, and this listener speaks none: give this program iwarp.Config.Listen with TLS, or take TLS from the peer's iwarp.Config.Dial"
	spokePlain  = "a peer's start-up of TLS failed, for it began without TLS: give the peer's program iwarp.Config.Dial with TLS, or take TLS from this program's iwarp.Config.Listen"
	spokeOther  = "a peer's first octets were no request of iWARP: what dials this port speaks another protocol, so look at the port that it was given"
	refusesHere = "a peer's start-up of TLS failed, for it does not take this end's certificate: give both ends certificates that each other's trust has"
	refusedHere = "a peer's start-up of TLS failed, for this end does not take what it brought, its certificate or version: give both ends certificates that each other's trust has"
)

// methods are with what requests of HTTP begin.
var methods = [][]byte{
	[]byte("GET "), []byte("HEAD "), []byte("POST "), []byte("PUT "), []byte("DELETE "), []byte("OPTIONS "), []byte("CONNECT "), []byte("PATCH "), []byte("PRI * "),
}

// spoke says what other protocol a start-up that failed with err had begun with its first octets;
// empty if that is not known, as where the peer said nothing.
func spoke(first []byte, err error) string {
	switch {
	case strings.Contains(err.Error(), "tls: first record does not look like"):
		return spokePlain
	case strings.Contains(err.Error(), "remote error: tls: "):
		return refusesHere
	case strings.Contains(err.Error(), "tls: "):
		return refusedHere
	case len(first) == 0 || begins(first, mpaRequest):
		return ""
	case slices.ContainsFunc(methods, func(m []byte) bool { return begins(first, m) }):
		return spokeHTTP
	case begins(first, tlsHandshake):
		return spokeTLS
	}
	return spokeOther
}

// otherServer is the error of an answer that is none of MPA's.
type otherServer struct {
	err   error
	first []byte // with what the answer begins
}

func (o *otherServer) Unwrap() error { return o.err }

func (o *otherServer) Error() string {
	as := "which is none of iWARP: look at the port that was dialed"
	switch {
	case begins(o.first, []byte("HTTP/")):
		as = "as HTTP does: the listener that is meant has another port"
	case begins(o.first, tlsAlert), begins(o.first, tlsHandshake):
		as = "as TLS does: give both ends iwarp.Config with functions for TLS, Dial here and Listen there, or dial another port"
	}
	return fmt.Sprintf("what listens there answers with %q, %s", o.first, as)
}

// answered is err, which an answer has failed with, and what the answer says of the server if it
// is of another protocol.
func answered(first []byte, err error) error {
	if errors.Is(err, wire.ErrMPAKey) {
		return &otherServer{err, bytes.Clone(first)}
	}
	return err
}

// begins reports whether first, octets that have come so far, is with what a peer begins, or a part of it.
func begins(first, with []byte) bool {
	n := min(len(first), len(with))
	return n > 0 && bytes.Equal(first[:n], with[:n])
}

// Records with which TLS begins, or refuses (RFC 8446 section 5.1).
var (
	tlsAlert     = []byte{21, 3}
	tlsHandshake = []byte{22, 3}
)

// With what a request of MPA and an answer begin (RFC 5044 section 7.1.1).
var (
	mpaRequest = []byte("MPA ID Req Frame")
	mpaReply   = []byte("MPA ID Rep Frame")
)

// hasKey is err of octets that have come so far, or the error of what does not begin with its key: a stranger may send
// fewer octets than a frame has, and wait for an answer to them.
func hasKey(b, key []byte, err error) error {
	if err == wire.ErrIncomplete && len(b) > 0 && !begins(b, key) {
		return wire.ErrMPAKey
	}
	return err
}
