package stream

import (
	"testing"

	"go.uber.org/goleak"
)

// The pool package starts two goroutines of its own when it is imported.
func TestMain(m *testing.M) { goleak.VerifyTestMain(m, goleak.IgnoreCurrent()) }
