package ibv

import (
	"testing"

	"go.uber.org/goleak"
)

// beforeTests runs before all tests. The tests in the guest replace it.
var beforeTests = func() {}

func TestMain(m *testing.M) {
	beforeTests()
	goleak.VerifyTestMain(m)
}
