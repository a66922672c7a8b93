// Package hooks has the test of the functions of a program's that the library calls: what a hook, a
// handler, an interceptor, a callback or a reader may do wrong, in each of them and over each provider.
// Nothing may be lost but the connection or the call that it belongs to.
package hooks
