//go:build !race

package evd

// assertions are on in builds with the race detector.
const assertions = false
