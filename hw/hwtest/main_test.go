package hwtest

import (
	"flag"
	"testing"

	"go.uber.org/goleak"
)

// TestMain lets more tests run at once than there are processors, since they wait most of
// the time: for faults to come, and in vain for completions that a fault took.
func TestMain(m *testing.M) {
	if err := flag.Set("test.parallel", "8"); err != nil {
		panic(err)
	}
	goleak.VerifyTestMain(m)
}
