package runtime

import (
	"fmt"
	"testing"

	"godat/ep"
	"godat/hw"
	"godat/hw/event"
	"godat/mem"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A write with immediate data takes a receive and brings no message, whatever its length.
// There are more of them than receives, so each receive has to be posted again.
func TestAWriteWithImmediateDataBringsNoMessage(t *testing.T) {
	const longest = 300 // more than a message
	tellers := map[string]func(c *Conn, ev event.Event) *mem.Buffer{
		"Message": (*Conn).Message,
		"ConnOf":  func(_ *Conn, ev event.Event) *mem.Buffer { _ = ConnOf(ev); return nil },
		"answers": func(c *Conn, _ event.Event) *mem.Buffer { _ = c.SendBytes(nil); return nil },
	}
	for name, tell := range tellers {
		t.Run(name, func(t *testing.T) {
			onEach(t, func(t *testing.T, ia *IA) {
				l, client, server := both(t, ia, ConnConfig{Depth: 2, Message: 64})
				to, err := server.Alloc(longest, hw.AllPrivileges)
				require.NoError(t, err)
				from, err := client.Alloc(longest, hw.LocalRead)
				require.NoError(t, err)
				rounds := 0
				if ia.Attr().Ops.Has(hw.OpWriteImm) {
					rounds = 40
				}
				for i := range rounds {
					say(t, client, fmt.Sprint("message ", i))
					require.Equal(t, fmt.Sprint("message ", i), hear(t, server))
					length := i * 17 % longest
					require.NoError(t, client.Do(within(t), ep.DTO{
						Op: hw.OpWriteImm, Immediate: uint32(i), Segment: from.Segment(0, length), Remote: to.Remote(0, length),
					}))
					ev := nextEvent(t, server.Events())
					value, ok := ev.Immediate()
					require.True(t, ok, "%v", ev)
					assert.EqualValues(t, i, value)
					assert.EqualValues(t, length, ev.Length)
					require.Nil(t, tell(server, ev), "the bytes went elsewhere")
					if name == "answers" {
						require.Empty(t, hear(t, client))
					}
					require.Nil(t, server.Message(ev), "again")
				}
				require.NoError(t, client.Close())
				require.NoError(t, l.Close())
			})
		})
	}
}
