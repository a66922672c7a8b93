//go:build race

package iwarp

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"godat/hw"
)

// readCalls is how often the process has asked the system to read. The system counts read, which
// builds with the race detector call, and does not count recvfrom, which others call.
func readCalls(t *testing.T) (n int) {
	t.Helper()
	b, err := os.ReadFile("/proc/self/io")
	require.NoError(t, err)
	for line := range strings.Lines(string(b)) {
		if _, err = fmt.Sscanf(line, "syscr: %d", &n); err == nil {
			break
		}
	}
	return n
}

func TestAReceiverReadsAShortMessageWithOneCall(t *testing.T) {
	const messages = 200
	b := newNode(t, New(Config{}), stalling(time.Minute)).peer(func(q *hw.QPConfig) { q.RecvDepth = 1 + messages })
	for range 1 + messages {
		b.recv()
	}
	s, _ := accepted(t, b, plain())
	b.awaitUp()
	s.write(sendFPDU(1, 0))
	b.received(0)
	before := readCalls(t)
	for i := range messages {
		s.write(sendFPDU(uint32(i)+2, 0))
		b.received(1 + i)
	}
	calls := readCalls(t) - before
	assert.GreaterOrEqual(t, calls, messages, "they are counted")
	assert.Less(t, calls, messages*3/2)
}
