package ledger

import (
	"flag"
	"fmt"
	"os/exec"
	"testing"

	"github.com/stretchr/testify/require"
)

var ops = flag.Int64("ledger.ops", 0, "posts to account for, on each provider; 0: as many as take seconds")

func TestEveryPostCompletesExactlyOnce(t *testing.T) {
	run := exec.Command("go", "test", "-count=1", "./posts", "-args", fmt.Sprintf("-posts.ops=%d", *ops))
	run.Dir = "../world"
	out, err := run.CombinedOutput()
	require.NoError(t, err, "%s", out)
}
