package iwarp

import (
	"flag"
	"testing"

	"go.uber.org/goleak"
)

// TestMain lets more of the parallel tests run at once than there are processors: they
// wait until a peer is given up.
func TestMain(m *testing.M) {
	if err := flag.Set("test.parallel", "8"); err != nil {
		panic(err)
	}
	goleak.VerifyTestMain(m)
}
