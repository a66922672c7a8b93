package main

import (
	"bytes"
	"context"
	"flag"
	"io"
	"math/rand/v2"
	"net"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"godat/examples/volume/node"
	"godat/runtime/rpc"
)

var strangersTime = flag.Duration("strangers", 5*time.Second, "how long strangers call in TestNothingOfStrangersIsInAVolumeBesideAnother")

// strangers call the nodes of two volumes.
type strangers struct {
	volumes [2]*cluster

	mu    sync.Mutex
	r     *rand.Rand
	tapes []*tape
}

// tape is what a node has said at the beginning of a connection.
type tape struct {
	mu   sync.Mutex
	said bytes.Buffer
}

const (
	mostTape  = 32 << 10
	mostTapes = 64
)

// Write implements io.Writer.
func (x *tape) Write(b []byte) (int, error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.said.Write(b[:min(len(b), mostTape-x.said.Len())])
	return len(b), nil
}

func (s *strangers) n(n int) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.r.IntN(n)
}

func (s *strangers) random(n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(s.n(256))
	}
	return b
}

// tape is a new one.
func (s *strangers) tape() io.Writer {
	s.mu.Lock()
	defer s.mu.Unlock()
	x := new(tape)
	if s.tapes = append(s.tapes, x); len(s.tapes) > mostTapes {
		s.tapes = slices.Delete(s.tapes, 0, 1)
	}
	return x
}

// divert is where a connection to a node of one volume goes: sometimes to one of the other, or to another node.
func (s *strangers) divert(addr string) string {
	if s.n(3) != 0 {
		return addr
	}
	return s.volumes[s.n(2)].peers[s.n(3)]
}

// call is what a stranger does once.
func (s *strangers) call() {
	c, other := s.volumes[0], s.volumes[1]
	if s.n(2) == 0 {
		c, other = other, c
	}
	at := s.n(3)
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	switch s.n(5) {
	case 0:
		s.say(c.peers[at], s.random(s.n(4096)))
	case 1:
		s.say(c.listens[at], s.random(s.n(4096)))
	case 2:
		s.say(c.peers[at], s.heard())
	case 3:
		words := []string{"remove", "add", "transfer", "check", "promote", "sums", "meet", "recover"}
		command := node.Command{Do: words[s.n(len(words))], ID: uint64(s.n(5)), Addr: other.peers[s.n(3)], Volume: other.token.Volume.String(), Force: true}
		_, err := node.Ask(ctx, c.ia, c.peers[at], command)
		assert.Error(c, err, command.Do)
	case 4:
		client, err := rpc.Dial(ctx, c.ia, c.peers[at], rpc.Config{Message: 64 << 10, Calls: 1})
		if err != nil {
			return // it is busy with others
		}
		method := uint16(1 + s.n(8))
		_, err = client.Call(ctx, rpc.Call{Method: method, Payload: s.random(s.n(2048)), SinkBytes: make([]byte, 4096)}, nil)
		assert.Error(c, err, "method %d", method)
		_ = client.Close() // the node may have done so
	}
}

// heard is what a node said to another one, perhaps with a bit that has flipped.
func (s *strangers) heard() []byte {
	s.mu.Lock()
	var x *tape
	if len(s.tapes) != 0 {
		x = s.tapes[s.r.IntN(len(s.tapes))]
	}
	s.mu.Unlock()
	if x == nil {
		return nil
	}
	x.mu.Lock()
	b := bytes.Clone(x.said.Bytes())
	x.mu.Unlock()
	if len(b) != 0 && s.n(2) == 0 {
		b[s.n(len(b))] ^= 1 << s.n(8)
	}
	return b
}

// say says something at an address, in two pieces, and hangs up.
func (s *strangers) say(addr string, b []byte) {
	conn, err := net.DialTimeout("tcp", addr, time.Second)
	if err != nil {
		return // it is busy with others
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(100 * time.Millisecond))
	cut := s.n(len(b) + 1)
	_, _ = conn.Write(b[:cut]) // who is refused may be cut off
	_, _ = conn.Read(make([]byte, 512))
	_, _ = conn.Write(b[cut:])
	_, _ = io.Copy(io.Discard, conn)
}

func TestNothingOfStrangersIsInAVolumeBesideAnother(t *testing.T) {
	t.Parallel()
	s := &strangers{r: rand.New(rand.NewPCG(8, 9))}
	var contents [2]*content
	for i := range s.volumes {
		c := newCluster(t)
		s.volumes[i] = c
		c.newProxy()
		c.three()
		c.leader()
		contents[i] = &content{h: c.host(), r: rand.New(rand.NewPCG(uint64(i), 3))}
		contents[i].write(5)
	}
	for _, c := range s.volumes {
		c.proxy.lets(s)
	}
	ended := make(chan struct{})
	var calling sync.WaitGroup
	calls, resets := 0, 0
	calling.Go(func() {
		next := time.Now()
		for {
			select {
			case <-ended:
				return
			default:
			}
			s.call()
			calls++
			if time.Now().After(next) {
				next = time.Now().Add(time.Second)
				s.volumes[s.n(2)].proxy.reset(1 + s.n(3))
				resets++
			}
		}
	})
	writes := 0
	for begun := time.Now(); time.Since(begun) < *strangersTime; writes += 5 {
		contents[writes/5%2].write(5)
	}
	close(ended)
	calling.Wait()
	for i, c := range s.volumes {
		require.Len(t, c.running, 3)
		for id, p := range c.running {
			select {
			case <-p.ended:
				require.Fail(t, "a node ended", "%d: %s", id, p.log.String())
			default:
			}
		}
		contents[i].read()
		c.same()
		refusals, term := uint64(0), uint64(0)
		for id := range c.running {
			got, err := c.ask(id, askStatus)
			require.NoError(t, err)
			assert.Len(t, got.Members, 3)
			refusals, term = refusals+got.Counts.Refusals, max(term, got.Term)
		}
		assert.NotZero(t, refusals)
		assert.Less(t, term, uint64(1000))
		t.Logf("volume %d: term %d, %d refusals", i, term, refusals)
	}
	t.Logf("%d calls of strangers, %d resets, %d writes", calls, resets, writes)
}
