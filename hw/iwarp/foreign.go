package iwarp

import (
	"bytes"
	"slices"
	"strings"
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
	case len(first) == 0 || bytes.HasPrefix(mpaRequest, first[:min(len(first), len(mpaRequest))]):
		return ""
	case slices.ContainsFunc(methods, func(m []byte) bool { return bytes.HasPrefix(first, m) }):
		return spokeHTTP
	case bytes.HasPrefix(first, []byte{22, 3}): // a record of a handshake (RFC 8446 section 5.1)
		return spokeTLS
	}
	return spokeOther
}

// mpaRequest is with what a request of MPA begins (RFC 5044 section 7.1.1).
var mpaRequest = []byte("MPA ID Req Frame")
