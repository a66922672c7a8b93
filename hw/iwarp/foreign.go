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
	spokeHTTP  = "a peer sent a request of HTTP to this port, which is iWARP's: the page or the server that it wants listens at another port"
	spokeTLS   = "a peer began TLS, and this listener speaks none: give both ends iwarp.Config with functions for TLS, Dial there and Listen here, or neither"
	spokePlain = "a peer's start-up of TLS failed, as that of a peer does which dials without TLS, or whose certificate or trust does not fit: give both ends iwarp.Config with functions for TLS, Dial there and Listen here"
	spokeOther = "a peer's first octets were no request of iWARP: what dials this port speaks another protocol, so look at the port that it was given"
)

// methods are with what requests of HTTP begin.
var methods = [][]byte{
	[]byte("GET "), []byte("HEAD "), []byte("POST "), []byte("PUT "), []byte("DELETE "), []byte("OPTIONS "), []byte("CONNECT "), []byte("PATCH "), []byte("PRI * "),
}

// spoke says what other protocol a start-up that failed with err had begun with its first octets;
// empty if that is not known, as where the peer said nothing.
func spoke(first []byte, err error) string {
	switch {
	case strings.Contains(err.Error(), "tls: "):
		return spokePlain
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

// mpaRequest is with what a request of MPA begins (RFC 5044 section 7.1.1).
var mpaRequest = []byte("MPA ID Req Frame")
