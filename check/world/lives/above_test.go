package lives

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"time"

	"github.com/stretchr/testify/require"

	"godat/examples/nvmeof/host"
	"godat/examples/nvmeof/identity"
	"godat/examples/nvmeof/store"
	"godat/examples/nvmeof/target"
	"godat/runtime/rpc"
	"godat/runtime/stream"
)

func init() {
	lives["stream"] = func(l *life) {
		ln := must(stream.Listen(l.Context(), l.server, address, stream.Config{}))
		l.says("server", "listens")
		accepted := make(chan net.Conn, 1)
		go func() {
			c, err := ln.Accept()
			if err != nil {
				l.Errorf("Accept: %v", err)
			}
			accepted <- c
		}()
		dialer := stream.Dialer{IA: l.client}
		client := must(dialer.DialContext(l.Context(), "tcp", address))
		server := <-accepted
		l.says("client", "is connected")
		must(client.Write([]byte("octets")))
		require.NoError(l, client.(*stream.Conn).CloseWrite())
		l.says("client", "has written and ended its stream")
		b, err := io.ReadAll(server)
		l.says("server", "has %q, and then the end: %s", b, brief(err))
		require.NoError(l, server.SetReadDeadline(time.Now().Add(time.Second)))
		must(client.Read(make([]byte, 0)))
		require.NoError(l, client.SetReadDeadline(time.Now().Add(time.Second)))
		_, err = client.Read(make([]byte, 1))
		l.says("client", "reads until its deadline has passed: %v", errors.Is(err, os.ErrDeadlineExceeded))
		must(server.Write([]byte("late")))
		require.NoError(l, server.Close())
		require.NoError(l, client.SetReadDeadline(time.Time{}))
		b, err = io.ReadAll(client)
		l.says("client", "has %q, and then the end: %s", b, brief(err))
		require.NoError(l, client.Close())
		require.NoError(l, ln.Close())
		l.says("server", "listens no more")
	}
	lives["calls"] = func(l *life) {
		server := must(rpc.Listen(l.Context(), l.server, address, rpc.Config{}))
		l.says("server", "listens")
		serving, end := context.WithCancel(l.Context())
		var served sync.WaitGroup
		served.Go(func() {
			err := server.Serve(serving, 2, func(r *rpc.Request) ([]byte, error) {
				l.says("server", "is asked %q", r.Payload())
				switch r.Method() {
				case 2:
					return nil, errors.New("it does not know")
				case 3:
					<-r.Context().Done()
					l.says("server", "learns that the caller has left")
					return nil, nil
				}
				if r.SinkLen() > 0 {
					return nil, r.WriteBytes([]byte("as much as there is room for"), 0)
				}
				return []byte("an answer"), nil
			})
			l.says("server", "has served: %s", brief(err))
		})
		client := must(rpc.Dial(l.Context(), l.client, address, rpc.Config{}))
		answer, err := client.Call(l.Context(), rpc.Call{Method: 1, Payload: []byte("a question")}, nil)
		l.says("client", "has %q: %s", answer, brief(err))
		sink := make([]byte, 28)
		_, err = client.Call(l.Context(), rpc.Call{Method: 1, Payload: []byte("more than a message has"), SinkBytes: sink}, nil)
		l.says("client", "has %q in its memory: %s", sink, brief(err))
		_, err = client.Call(l.Context(), rpc.Call{Method: 2, Payload: []byte("what nobody knows")}, nil)
		l.says("client", "has an error of the handler's: %v", err)
		bounded, cancel := context.WithTimeout(l.Context(), time.Second)
		_, err = client.Call(bounded, rpc.Call{Method: 3, Payload: []byte("what takes too long")}, nil)
		cancel()
		time.Sleep(time.Second)
		l.says("client", "waited until its deadline: %v", errors.Is(err, context.DeadlineExceeded))
		require.NoError(l, client.Close())
		end()
		served.Wait()
	}
	lives["disk"] = func(l *life) {
		s := must(store.NewMemory(64 << 10))
		t, err := target.New(l.Context(), l.server, target.Config{
			Addr: address, Subsystem: "nqn.2026-01.world:disk", Namespaces: []target.Namespace{{Store: s, ID: identity.ID{1}}},
		})
		require.NoError(l, err)
		serving, end := context.WithCancel(l.Context())
		ran := make(chan error, 1)
		go func() { ran <- t.Run(serving) }()
		l.says("server", "serves a disk")
		c := must(host.Connect(l.Context(), l.client, host.Config{Addr: address, Subsystem: "nqn.2026-01.world:disk"}))
		l.says("client", "has a controller with %d queue", c.Queues())
		d := must(c.Disk(l.Context(), 1))
		l.says("client", "finds a disk of %d bytes, in blocks of %d", d.Size(), d.BlockSize())
		b := make([]byte, d.BlockSize())
		copy(b, "a block")
		_, err = d.WriteStable(b, 0)
		l.says("client", "has written a block for good: %s", brief(err))
		clear(b)
		_, err = d.ReadAt(b, 0)
		l.says("client", "has read %q: %s", b[:7], brief(err))
		l.says("client", "compares it: %s", brief(d.Compare(b, 0)))
		b[0]++
		l.says("client", "compares it with another one: %v", d.Compare(b, 0))
		require.NoError(l, c.Close())
		end()
		l.says("server", "has served: %s", brief(<-ran))
	}
}
