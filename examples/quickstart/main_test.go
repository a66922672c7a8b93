package main

import (
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m, goleak.IgnoreCurrent()) }

func Example() {
	main()
	// Unordered output:
	// SEND with cookie 2 moved 5 bytes
	// RECEIVE with cookie 1 moved 5 bytes
	// hello
}
