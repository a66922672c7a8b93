// Package reject tells a provider's own reject from a program's. Neither MPA nor the
// connection managers below verbs say whose a reject is: rdma_reject of a C program
// arrives like the reject of a provider that has no room. A program may give no private
// data, so a reject is the program's unless it carries the mark of the providers of
// this module.
package reject

import "bytes"

// mark is what no program of ours or of C's uDAPL begins its private data with.
var mark = []byte("godat: no room\x01")

// ByProvider returns the private data of a provider's own reject, as a new slice.
func ByProvider() []byte { return bytes.Clone(mark) }

// IsByProvider reports whether a reject's private data is [ByProvider], with any
// padding of zeros.
func IsByProvider(private []byte) bool {
	rest, ok := bytes.CutPrefix(private, mark)
	return ok && len(bytes.Trim(rest, "\x00")) == 0
}
