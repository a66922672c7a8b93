package mistakes

import (
	"testing"

	"go.uber.org/goleak"
)

// The upcall pool's package has goroutines of its own from its beginning.
func TestMain(m *testing.M) { goleak.VerifyTestMain(m, goleak.IgnoreCurrent()) }
