package ibv

import (
	"testing"

	"go.uber.org/goleak"
)

// beforeTests is what the tests in the guest do first.
var beforeTests = func() {}

func TestMain(m *testing.M) {
	beforeTests()
	goleak.VerifyTestMain(m)
}
