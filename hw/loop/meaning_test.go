package loop

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"godat/hw"
)

// Both ends share a process here, so a write has placed its bytes when it completes. Over
// a network it may not have.
func TestAWriteHasBeenPlacedWhenItSucceeds(t *testing.T) {
	for _, n := range []int{1, 8, handover, handover + 1, memLen} {
		a, b := pair(t, nil)
		a.mem[n-1] = 7
		var placed byte
		a.sends.hook = func([]hw.WC) { placed = b.mem[n-1] }
		a.post(wr(hw.OpWrite, a, 0, uint32(n), b.mr.RKey(), b.addr(0)))
		require.Equal(t, hw.StatusSuccess, a.sends.wait(1)[0].Status)
		assert.EqualValues(t, 7, placed, "of %d bytes", n)
		a.sends.hook = nil
	}
}

// The poster may use the buffer of a send again when the send has completed. The peer's
// answer does not imply that: it may come before the completion.
func TestAnAnswerMayComeBeforeTheCompletionOfTheSend(t *testing.T) {
	a, b := pair(t, nil)
	var order []string
	note := func(what string) func([]hw.WC) {
		return func(wcs []hw.WC) {
			if wcs[0].Op != hw.OpEnd && wcs[0].Status == hw.StatusSuccess {
				order = append(order, what)
			}
		}
	}
	b.recvs.hook = func(wcs []hw.WC) {
		if wcs[0].Status == hw.StatusSuccess {
			b.post(send(1, b.sge(8, 8)))
		}
	}
	a.recvs.hook, a.sends.hook = note("the answer"), note("the send")
	a.recv(1, a.sge(8, 8))
	b.recv(1, b.sge(0, 8))
	a.post(send(2, a.sge(0, 8)))
	a.recvs.wait(1)
	a.sends.wait(1)
	assert.Equal(t, []string{"the answer", "the send"}, order)
}
