package registers

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
	"github.com/stretchr/testify/require"
)

// A random history of one register, right or wrong, has the same verdict with and without decided.
func TestWhatIsDecidedHasTheSameVerdict(t *testing.T) {
	whole := model
	whole.Partition = nil
	verdicts := make(map[porcupine.CheckResult]int)
	for seed := range uint64(3000) {
		r := rand.New(rand.NewPCG(seed, 1))
		var all []porcupine.Operation
		written := []uint64{0}
		for i := range 9 {
			o := porcupine.Operation{ClientId: i, Call: 1 + r.Int64N(20), Output: uint64(0)}
			o.Return = o.Call + 1 + r.Int64N(12)
			a := word{Access: Access{Write: r.IntN(2) == 0}}
			if a.Write {
				a.Value = uint64(len(written))
				written = append(written, a.Value)
				if r.IntN(2) == 0 {
					o.Return = Never
				}
			} else {
				o.Output = written[r.IntN(len(written))]
			}
			o.Input = a
			all = append(all, o)
		}
		want := porcupine.CheckOperationsTimeout(whole, all, time.Minute)
		require.Equal(t, want, porcupine.CheckOperationsTimeout(model, all, time.Minute), seed)
		verdicts[want]++
	}
	require.Greater(t, verdicts[porcupine.Ok], 300)
	require.Greater(t, verdicts[porcupine.Illegal], 300)
}
