//go:build !race

package delivery

// assertions are on in builds with the race detector.
const assertions = false
