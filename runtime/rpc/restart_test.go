package rpc

import (
	"encoding/binary"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	dat "godat/runtime"
)

// 200 busy clients see one server after the other. No call fails, and none runs twice.
func TestServersThatFollowEachOtherLoseNoCall(t *testing.T) {
	const most, calls = 200, 12
	clients := most
	if slow {
		clients = 40
	}
	onEach(t, func(t *testing.T, ia *dat.IA) {
		var runs [most * calls]atomic.Int32
		var begun atomic.Int32
		at := ":0"
		listen := func() *Server {
			s, err := Listen(t.Context(), ia, at, Config{Conns: clients, Calls: 2, Message: 64})
			require.NoError(t, err)
			at = s.Addr()
			go handle(s, 4, func(r *Request) {
				runs[binary.BigEndian.Uint32(r.Payload())].Add(1)
				begun.Add(1)
				echo(r)
			})
			return s
		}
		s := listen()
		var all sync.WaitGroup
		for i := range clients {
			c := dial(t, ia, s, Config{Calls: 2, Message: 64, Redial: 20 * time.Millisecond})
			all.Go(func() {
				for n := range calls {
					_, err := c.Call(within(t), Call{Payload: binary.BigEndian.AppendUint32(nil, uint32(i*calls+n))}, nil)
					if !assert.NoError(t, err) {
						return
					}
				}
			})
		}
		for i := range followers {
			require.Eventually(t, func() bool { return int(begun.Load()) > clients*calls*(i+1)/(followers+1) }, time.Minute, time.Millisecond)
			require.NoError(t, s.Shutdown(within(t)))
			s = listen()
		}
		all.Wait()
		require.NoError(t, s.Shutdown(within(t)))
		for i := range clients * calls {
			assert.EqualValues(t, 1, runs[i].Load(), "call %d", i)
		}
	})
}
