package beside

import (
	"bytes"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"godat/examples/nvmeof/nvme"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m, goleak.IgnoreCurrent()) }

func TestEachWayIsMeasuredBesideItsRival(t *testing.T) {
	var out bytes.Buffer
	require.NoError(t, Run(t.Context(), Config{Turns: 3, Turn: 5 * time.Millisecond, Processors: []int{2}}, &out))
	assert.Contains(t, out.String(), "GOMAXPROCS=2\n")
	for _, line := range []string{
		"NVMe writes on loop / plain RDMA writes", "NVMe reads on loop / plain RDMA writes",
		"NVMe writes on iwarp / writes on a net.Conn", "NVMe reads on iwarp / reads on a net.Conn",
	} {
		assert.Regexp(t, `(?m)^`+line+`: rate \d+\.\d\d \(.* in 3 turns\), by processor time \d+\.\d\d$`, out.String())
	}
}

func TestTheServerOnANetConnKeepsWhatIsWrittenAndAllocatesNothing(t *testing.T) {
	c, s, err := tcpPair(nil)
	require.NoError(t, err)
	move := func(op nvme.Opcode, i, block int) {
		c.Begin(i, op, block)
		err := c.Flush()
		for done := false; err == nil && !done; {
			err = c.Receive(func(n int) { done = n == i })
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	want := bytes.Repeat([]byte{7}, size)
	copy(c.Data(0), want)
	move(nvme.IOWrite, 0, 3)
	move(nvme.IORead, 1, 3)
	assert.Equal(t, want, c.Data(1))
	move(nvme.IORead, 1, 4)
	assert.Equal(t, make([]byte, size), c.Data(1))
	allocations := testing.AllocsPerRun(100, func() {
		move(nvme.IOWrite, 0, 1)
		move(nvme.IORead, 1, 1)
	})
	assert.Less(t, allocations, 1.0)
	require.NoError(t, c.Close())
	require.NoError(t, <-s)
}
