//go:build !guest

package stream

// adapters are what the tests run on.
var adapters = []string{"loop", "iwarp:127.0.0.1", "sim"}
