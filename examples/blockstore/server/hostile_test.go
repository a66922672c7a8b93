package server

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"godat/examples/blockstore/block"
	"godat/examples/blockstore/proto"
	dat "godat/runtime"
)

// hostile is a client that breaks the protocol: it sends whatever bytes it is given.
type hostile struct {
	*testing.T
	events  *dat.Dispatcher
	ep      *dat.Endpoint
	memory  *dat.LMR
	welcome proto.Welcome
}

// connectRaw connects with hello as private data, and returns the event that answers
// it.
func (f *fixture) connectRaw(hello []byte) (*hostile, dat.Event) {
	f.Helper()
	pz, err := f.ia.NewPZ()
	require.NoError(f, err)
	h := &hostile{T: f.T}
	h.events, err = f.ia.NewDispatcher(dat.DispatcherConfig{Mode: dat.ModeChannel, QLen: 64})
	require.NoError(f, err)
	h.ep, err = f.ia.NewEndpoint(dat.EndpointConfig{
		PZ: pz, Recv: h.events, Request: h.events, Conn: h.events,
		Attr: &dat.EndpointAttr{MaxRecvDTOs: 16, MaxRequestDTOs: 16},
	})
	require.NoError(f, err)
	h.memory, err = pz.Alloc(1<<16, dat.LocalRead|dat.LocalWrite)
	require.NoError(f, err)
	f.Cleanup(func() {
		assert.NoError(f, h.ep.Close())
		assert.NoError(f, h.memory.Free())
		assert.NoError(f, h.events.Close())
		assert.NoError(f, pz.Close())
	})
	require.NoError(f, h.ep.CommonConnect(f.server.Addr(), dat.ConnectConfig{Private: hello, Timeout: 5 * time.Second}))
	ev := h.event()
	conn, _ := ev.Connection()
	if ev.Number == dat.Established {
		h.welcome, err = proto.ParseWelcome(conn.Private)
		require.NoError(f, err)
	}
	return h, ev
}

func (f *fixture) hostile() *hostile {
	f.Helper()
	h, ev := f.connectRaw(proto.Hello{Limits: limits}.Append(nil))
	require.Equal(f, dat.Established, ev.Number)
	return h
}

func (h *hostile) event() dat.Event {
	h.Helper()
	select {
	case ev := <-h.events.C():
		return ev
	case <-time.After(5 * time.Second):
		require.Fail(h, "no event")
		panic("unreachable")
	}
}

// send sends raw bytes.
func (h *hostile) send(b []byte) {
	h.Helper()
	n := copy(h.memory.Bytes(), b)
	require.NoError(h, h.ep.PostSend(1, dat.Default, h.memory.Segment(0, n)))
}

// disconnected waits until the server ends the connection.
func (h *hostile) disconnected() {
	h.Helper()
	for {
		ev := h.event()
		if ev.Number == dat.Disconnected || ev.Number == dat.Broken {
			return
		}
	}
}

func encode(m proto.Message) []byte {
	b := make([]byte, proto.MessageLen)
	m.Put(b)
	return b
}

func TestAMalformedHelloIsRefused(t *testing.T) {
	f := serve(t, 1)
	for name, hello := range map[string][]byte{
		"nothing":          nil,
		"another protocol": []byte("GET / HTTP/1.1\r\n\r\n"),
		"no slots":         proto.Hello{Limits: proto.Limits{Block: 4096}}.Append(nil),
	} {
		t.Run(name, func(t *testing.T) {
			f := &fixture{T: t, ia: f.ia, server: f.server}
			_, ev := f.connectRaw(hello)
			require.Equal(t, dat.PeerRejected, ev.Number)
			conn, _ := ev.Connection()
			w, err := proto.ParseWelcome(conn.Private)
			require.NoError(t, err)
			assert.Equal(t, proto.Mismatch, w.Status)
		})
	}
	f.roundTrip(f.link(), "a well-mannered client")
}

func TestAServerDisconnectsAClientThatBreaksTheProtocol(t *testing.T) {
	f := serve(t, 3)
	good := f.link()
	get := proto.Message{Op: proto.OpGet, ID: block.IDOf([]byte("x"))}
	for name, attack := range map[string]func(h *hostile){
		"an empty message": func(h *hostile) { h.send(nil) },
		"a short message":  func(h *hostile) { h.send(encode(get)[:40]) },
		"noise":            func(h *hostile) { h.send([]byte("................................................................")) },
		"a message too long for any receive": func(h *hostile) {
			h.send(make([]byte, 4096))
		},
		"a slot that it does not have": func(h *hostile) {
			bad := get
			bad.Slot = uint16(limits.Slots)
			h.send(encode(bad))
		},
		"a block longer than its slot": func(h *hostile) {
			h.send(encode(proto.Message{Op: proto.OpPut, Length: uint32(limits.Block + 1)}))
		},
		"a reply": func(h *hostile) {
			bad := get
			bad.Reply = true
			h.send(encode(bad))
		},
		"a write outside its window": func(h *hostile) {
			past := h.welcome.Window
			past.Addr += uint64(past.Len)
			past.Len = 64
			require.NoError(h, h.ep.PostRDMAWrite(1, dat.Default, past, h.memory.Segment(0, 64)))
		},
		"a read with a guessed key": func(h *hostile) {
			guessed := h.welcome.Window
			guessed.Context += 1 << 8
			guessed.Len = 64
			require.NoError(h, h.ep.PostRDMARead(1, dat.Default, guessed, h.memory.Segment(0, 64)))
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := &fixture{T: t, ia: f.ia, server: f.server}
			h := f.hostile()
			attack(h)
			h.disconnected()
			f.roundTrip(good, "the others do not notice: "+name)
		})
	}
}

func TestAServerDisconnectsAClientThatTakesNoAnswers(t *testing.T) {
	f := serve(t, 1)
	h := f.hostile()
	// The server answers each request at once, but this client posts no receive for an
	// answer: in the end the server has no room for another one.
	for range 4 * limits.Slots {
		if h.ep.PostSend(1, dat.Default, h.requestRoot()) != nil {
			break // disconnected already
		}
	}
	h.disconnected()
}

func (h *hostile) requestRoot() dat.Segment {
	n := copy(h.memory.Bytes(), encode(proto.Message{Op: proto.OpRoot}))
	return h.memory.Segment(0, n)
}

func TestABlockThatArrivesDamagedIsNotStored(t *testing.T) {
	f := serve(t, 1)
	h := f.hostile()
	for name, change := range map[string]func(m *proto.Message){
		"another checksum": func(m *proto.Message) { m.CRC++ },
		"another name":     func(m *proto.Message) { m.ID[0]++ },
	} {
		t.Run(name, func(t *testing.T) {
			data := h.memory.Bytes()[1024:1524]
			m := proto.Message{Op: proto.OpPut, Length: 500, CRC: block.CRC(data), ID: block.IDOf(data)}
			change(&m)
			require.NoError(t, h.ep.PostRecv(7, dat.Default, h.memory.Segment(512, proto.MessageLen)))
			window := h.welcome.Window
			window.Len = 500
			require.NoError(t, h.ep.PostRDMAWrite(1, dat.Suppress, window, h.memory.Segment(1024, 500)))
			h.send(encode(m))
			for ev := h.event(); ev.Cookie != 7; ev = h.event() {
				require.NoError(t, ev.Err())
			}
			reply, err := proto.ParseReply(h.memory.Bytes()[512:512+proto.MessageLen], limits)
			require.NoError(t, err)
			assert.Equal(t, proto.Damaged, reply.Status)
			_, err = f.store.Get(m.ID, make([]byte, 4096))
			assert.Error(t, err)
		})
	}
}
