package ibv

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"godat/hw/internal/reject"
)

var transports = map[string]transport{
	"RoCE":              {tail: true},
	"RoCE without tail": {},
	"iWARP":             {iwarp: true},
	"iWARP with tail":   {iwarp: true, tail: true},
}

// rejection is the status of a consumer's reject.
func (t transport) rejection() int {
	if t.iwarp {
		return -111
	}
	return consumerReject
}

// carried is a message as the peer's connection manager delivers it.
func (t transport) carried(m message, b []byte) []byte {
	if t.iwarp {
		return b
	}
	return append(bytes.Clone(b), make([]byte, roomInfiniBand[m]-len(b))...)
}

func TestPrivateDataTravelsUnchanged(t *testing.T) {
	for name, tr := range transports {
		t.Run(name, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				m := rapid.SampledFrom([]message{msgRequest, msgAccept}).Draw(t, "message")
				data := rapid.SliceOfN(rapid.Byte(), 0, tr.most()).Draw(t, "data")
				sent := note{rapid.Uint32().Draw(t, "key"), uint64(rapid.Uint16().Draw(t, "addr"))}

				got, n, tailed := tr.unpack(m, tr.carried(m, tr.pack(m, data, true, sent)))
				if tailed != tr.tail {
					t.Fatalf("tailed %v", tailed)
				}
				switch {
				case tr.tail && n != sent:
					t.Fatalf("note %v, not %v", n, sent)
				case tr.tail || tr.iwarp:
					if !bytes.Equal(data, got) {
						t.Fatalf("%x became %x", data, got)
					}
				case !bytes.Equal(bytes.TrimRight(data, "\x00"), bytes.TrimRight(got, "\x00")):
					t.Fatalf("%x became %x", data, got)
				}
			})
		})
	}
}

func TestRejectsTravelUnchanged(t *testing.T) {
	for name, tr := range transports {
		t.Run(name, func(t *testing.T) {
			for n := range tr.most() + 1 {
				data := bytes.Repeat([]byte{0xa5}, n)
				b := tr.pack(msgReject, data, true, note{})
				if !tr.iwarp {
					require.LessOrEqual(t, len(b), roomInfiniBand[msgReject])
				}
				got, byConsumer := tr.unpackReject(tr.rejection(), tr.carried(msgReject, b))
				require.True(t, byConsumer, "%d bytes", n)
				if tr.tail || tr.iwarp {
					require.Equal(t, string(data), string(got))
				} else {
					require.Equal(t, string(data), string(bytes.TrimRight(got, "\x00")))
				}
			}
		})
	}
}

func TestPackedMessagesFitTheTransport(t *testing.T) {
	for name, tr := range transports {
		for _, m := range []message{msgRequest, msgAccept, msgReject} {
			b := tr.pack(m, make([]byte, tr.most()), true, note{1, 2})
			if tr.iwarp {
				assert.LessOrEqual(t, len(b), roomIWARP, name)
			} else {
				assert.LessOrEqual(t, len(b), roomInfiniBand[m], name)
			}
		}
	}
	assert.Equal(t, 48, transport{tail: true}.most(), "uDAPL's own tests send this much")
}

func TestARejectByTheProviderDoesNotCountAsTheConsumers(t *testing.T) {
	padded := make([]byte, roomInfiniBand[msgReject])
	marked := append(reject.ByProvider(), padded...)[:len(padded)]
	for _, c := range []struct {
		name   string
		tr     transport
		status int
		data   []byte
	}{
		{"RoCE, nobody listens", transport{tail: true}, 8, padded},
		{"RoCE, the provider's own", transport{tail: true}, consumerReject, marked},
		{"RoCE without tails, the provider's own", transport{}, consumerReject, marked},
		{"siw, the provider's own", transport{iwarp: true, siw: true}, -104, reject.ByProvider()},
		{"siw, an answer that it does not take", transport{iwarp: true, siw: true}, -111, nil},
		{"iWARP, the provider's own", transport{iwarp: true}, -111, reject.ByProvider()},
		{"iWARP, the peer hangs up", transport{iwarp: true}, -104, nil},
	} {
		data, byConsumer := c.tr.unpackReject(c.status, c.data)
		assert.False(t, byConsumer, c.name)
		assert.Empty(t, data, c.name)
	}
}

// An rdma_reject without private data counts as a consumer's reject, too.
func TestARejectWithoutDataCountsAsTheConsumers(t *testing.T) {
	padded := make([]byte, roomInfiniBand[msgReject])
	for _, c := range []struct {
		name   string
		tr     transport
		status int
		data   []byte
	}{
		{"RoCE", transport{tail: true}, consumerReject, padded},
		{"RoCE without tails", transport{}, consumerReject, padded},
		{"siw", transport{iwarp: true, siw: true}, -104, nil},
		{"siw with tails", transport{iwarp: true, siw: true, tail: true}, -104, nil},
		{"iWARP", transport{iwarp: true}, -111, nil},
	} {
		data, byConsumer := c.tr.unpackReject(c.status, c.data)
		assert.True(t, byConsumer, c.name)
		assert.Empty(t, data, c.name)
	}
}

func TestAPlainRejectOfACProgramCountsAsTheConsumers(t *testing.T) {
	for name, tr := range transports {
		data, byConsumer := tr.unpackReject(tr.rejection(), tr.carried(msgReject, nil))
		assert.True(t, byConsumer, name)
		assert.Empty(t, data, name)
	}
	_, byConsumer := transport{tail: true}.unpackReject(8, make([]byte, roomInfiniBand[msgReject]))
	assert.False(t, byConsumer, "nobody listens")
}

func TestARejectOfTheCLibraryIsParsed(t *testing.T) {
	c := append([]byte{2, 0, 2, 0}, "no room"...)
	for _, tr := range []transport{{tail: true}, {}} {
		got, byConsumer := tr.unpackReject(consumerReject, tr.carried(msgReject, c))
		require.True(t, byConsumer)
		assert.Equal(t, "no room", string(bytes.TrimRight(got, "\x00")))

		got, byConsumer = tr.unpackReject(consumerReject, tr.carried(msgReject, c[:4]))
		require.True(t, byConsumer)
		assert.Empty(t, got)
	}
	assert.Equal(t, c, transport{}.pack(msgReject, []byte("no room"), false, note{}), "and ours is its")
}

func TestAMessageWithoutATailKeepsItsPadding(t *testing.T) {
	tr := transport{tail: true}
	got, n, tailed := tr.unpack(msgRequest, tr.carried(msgRequest, []byte("hello")))
	assert.Equal(t, "hello", string(bytes.TrimRight(got, "\x00")))
	assert.Len(t, got, roomInfiniBand[msgRequest], "InfiniBand does not say how much it was")
	assert.False(t, tailed)
	assert.Zero(t, n)

	got, _, _ = tr.unpack(msgAccept, make([]byte, roomInfiniBand[msgAccept]))
	assert.Nil(t, got, "nothing but padding")

	full := bytes.Repeat([]byte{0xff}, roomInfiniBand[msgRequest])
	got, _, tailed = tr.unpack(msgRequest, full)
	assert.Equal(t, full, got)
	assert.False(t, tailed)
}

func TestADamagedTailCountsAsData(t *testing.T) {
	for name, tr := range transports {
		if !tr.tail {
			continue
		}
		b := tr.carried(msgRequest, tr.pack(msgRequest, []byte("hello"), true, note{1, 2}))
		for i := range b {
			if tr.iwarp && (i < 5 || i >= 9) {
				continue // only the magic is checked
			}
			bad := bytes.Clone(b)
			bad[i] ^= 0x10
			_, _, tailed := tr.unpack(msgRequest, bad)
			assert.False(t, tailed, "%s: byte %d", name, i)
		}
	}
}

func TestATailOfAnotherKindOfMessageCountsAsData(t *testing.T) {
	tr := transport{tail: true}
	b := tr.pack(msgRequest, nil, true, note{1, 2})
	shifted := append(make([]byte, roomInfiniBand[msgAccept]-len(b)), b...)
	_, _, tailed := tr.unpack(msgAccept, shifted)
	assert.False(t, tailed)
}

func TestPackedDataIsACopy(t *testing.T) {
	for name, tr := range transports {
		for _, m := range []message{msgRequest, msgAccept, msgReject} {
			data := []byte("hello")
			b := tr.pack(m, data, false, note{})
			before := bytes.Clone(b)
			clear(data)
			assert.Equal(t, before, b, name)
		}
	}
}
