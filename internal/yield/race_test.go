//go:build race

package yield

const enabled = true
