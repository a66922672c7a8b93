// Package reject tells a provider's own reject from a program's. Neither MPA nor the
// connection managers below verbs say who rejected: the rdma_reject of a C program
// arrives like the reject of a provider that has no room. A program may reject without
// private data, so a reject counts as a program's unless it carries the mark that the
// providers of this module put into theirs.
package reject

import "bytes"

// mark begins the private data of a provider's own reject. No program of this module or
// of C's uDAPL begins its private data with it.
var mark = []byte("godat: no room\x01")

// ByProvider returns the private data of a provider's own reject, as a new slice.
func ByProvider() []byte { return bytes.Clone(mark) }

// IsByProvider reports whether a reject's private data is that of [ByProvider], with or
// without a padding of zeros.
func IsByProvider(private []byte) bool {
	rest, ok := bytes.CutPrefix(private, mark)
	return ok && len(bytes.Trim(rest, "\x00")) == 0
}
