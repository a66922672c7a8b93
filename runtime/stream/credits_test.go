package stream

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"godat/mem"
)

// exchange is two ends without endpoints, and the messages between them. Tests deliver
// them when they want to.
type exchange struct {
	t    *testing.T
	ends [2]*Conn
	way  [2][][]byte // from each end
	late [2][]uint64 // the cookies of each end's sends that have not completed
}

func newExchange(t *testing.T) *exchange {
	return &exchange{t: t, ends: [2]*Conn{bareConn(leastRing), bareConn(leastRing)}}
}

// post makes an end's next message, with n bytes.
func (x *exchange) post(from, n int, fin bool) { x.postBytes(from, make([]byte, n), fin) }

func (x *exchange) postBytes(from int, bytes []byte, fin bool) {
	c := x.ends[from]
	require.Less(x.t, len(x.late[from]), messages, "the message finds a slot")
	slot := int(c.line.flow.out.sent.Load() % messages)
	c.line.flow.in.reposted.Store(c.line.flow.in.received.Load())
	var m message
	if fin {
		m.flags = flagFIN
	}
	cookie, _, _ := c.line.next(bytes, &m)
	b := make([]byte, slotSize)
	copy(b, c.line.flow.out.slots[slot*slotSize:])
	if m := (message{}); m.parse(b, newest) && m.has(flagRing) { // these ends have no region to offer
		m.ring = mem.RemoteSegment{Len: uint32(len(c.line.flow.in.second.mem))}
		m.put(b, newest)
	}
	x.way[from] = append(x.way[from], b)
	x.late[from] = append(x.late[from], cookie)
	require.LessOrEqual(x.t, c.line.flow.out.sent.Load(), c.line.flow.out.granted.Load(), "the message has a receive")
	if !c.line.flow.out.fin.Load() {
		require.Less(x.t, c.line.flow.out.sent.Load(), c.line.flow.out.granted.Load(), "the FIN has a receive left")
	}
}

// complete completes an end's oldest send.
func (x *exchange) complete(from int) {
	if late := x.late[from]; len(late) > 0 {
		x.late[from] = late[1:]
		if late[0] != silentCookie {
			x.ends[from].line.flow.out.complete(late[0] - sendCookie)
		}
	}
}

// deliver delivers the oldest message of an end.
func (x *exchange) deliver(from int) {
	if len(x.way[from]) == 0 {
		return
	}
	c := x.ends[1-from]
	require.Less(x.t, c.line.flow.in.received.Load(), c.line.flow.in.reposted.Load()+messages, "the message finds a receive")
	slot := int(c.line.flow.in.received.Load() % messages)
	copy(c.line.flow.in.slots[slot*slotSize:], x.way[from][0])
	x.way[from] = x.way[from][1:]
	c.line.arrive(slot)
	if over := c.line.ended.Load(); over != nil {
		require.NoError(x.t, over.err, "honest ends don't find fault with each other")
	}
}

// write sends what an end has room for, of up to n bytes.
func (x *exchange) write(from, n int) {
	if c := x.ends[from]; !c.line.flow.out.fin.Load() {
		if room := c.line.flow.vacant(n); room > 0 {
			x.post(from, room, false)
		}
	}
}

// serve is report without endpoints.
func (x *exchange) serve(end int) {
	c := x.ends[end]
	c.line.flow.in.reposted.Store(c.line.flow.in.received.Load())
	if c.line.flow.reportDue() {
		x.post(end, 0, false)
	}
}

// read consumes up to n bytes at an end.
func (x *exchange) read(end, n int) {
	c := x.ends[end]
	c.line.flow.in.consumed.Add(uint64(min(n, len(c.line.flow.readable(0)))))
	if c.line.flow.due() {
		x.serve(end)
	}
}

// settle lets everything arrive and everything be read, until nothing changes.
func (x *exchange) settle() {
	for range 100 {
		for end := range 2 {
			for len(x.way[end]) > 0 {
				x.deliver(end)
			}
			for len(x.late[end]) > 0 {
				x.complete(end)
			}
			x.read(end, leastRing)
			x.serve(end)
		}
	}
}

// act does something at an end, in bursts, so that the messages of both ends cross.
func (x *exchange) act(random *rand.Rand) {
	end := random.IntN(2)
	for range 1 + random.IntN(messages) {
		switch random.IntN(6) {
		case 0:
			x.deliver(end)
		case 1:
			x.complete(end)
		case 2, 3:
			x.write(end, 1+random.IntN(1<<random.IntN(12)))
		case 4:
			x.read(end, 1+random.IntN(leastRing))
		case 5:
			x.serve(end)
		}
	}
}

// requireRoom requires that an end can write.
func (x *exchange) requireRoom(end int) {
	c := x.ends[end]
	require.Positive(x.t, c.line.flow.vacant(leastRing), "end %d has %d credits", end, c.line.flow.credits())
}

// Whatever two ends did, they can go on once everything has arrived and was read.
func TestEndsThatExchangeMessagesNeverBlockEachOther(t *testing.T) {
	for seed := range uint64(300) {
		random := rand.New(rand.NewPCG(seed, 1))
		x := newExchange(t)
		for range 100 {
			x.act(random)
		}
		finished := random.IntN(3) // one end, or none
		if finished < 2 {
			x.post(finished, 0, true)
		}
		for range 100 {
			x.act(random)
		}
		x.settle()
		for end := range x.ends {
			if end != finished {
				x.requireRoom(end)
			}
		}
	}
}

// Both ends use up their credits at the same time, from the first message on.
func TestEndsWhoseMessagesCrossGrantEachOtherReceives(t *testing.T) {
	x := newExchange(t)
	for end := range 2 {
		for x.ends[end].line.flow.vacant(1) > 0 {
			x.write(end, 1)
			x.complete(end)
		}
	}
	x.settle()
	x.requireRoom(0)
	x.requireRoom(1)
}

// An end that has sent its FIN goes on reading, and grants receives for that.
func TestAnEndGrantsReceivesBehindItsFIN(t *testing.T) {
	x := newExchange(t)
	for x.ends[0].line.flow.vacant(1) > 0 {
		x.write(0, 1)
		x.complete(0)
	}
	before := x.ends[0].line.flow.credits()
	x.post(0, 0, true)
	require.Equal(t, before, x.ends[0].line.flow.credits(), "the FIN takes the receive that was kept for it")
	x.complete(0)
	for x.ends[1].line.flow.vacant(1) > 0 {
		x.write(1, 1)
		x.complete(1)
	}
	for len(x.way[1]) > 0 {
		x.deliver(1)
	}
	for len(x.way[0]) > 0 {
		x.deliver(0)
	}
	x.serve(1) // as a Write does that waits
	x.settle()
	x.requireRoom(1)
}

// A report may take a credit between the moment when a Write finds room and its message.
func TestAWriteLooksForItsCreditAgain(t *testing.T) {
	x := newExchange(t)
	c := x.ends[0]
	for c.line.flow.credits() > reportCredit {
		x.post(0, 0, false)
		x.complete(0)
	}
	sent, err := c.line.trySend([]byte{1})
	require.NoError(t, err)
	require.False(t, sent)
}

// The peer may report bytes as read before this end knows that they were sent.
func TestBytesStayInTheImageUntilTheirSendHasCompleted(t *testing.T) {
	x := newExchange(t)
	for range 4 {
		x.write(0, leastRing/4)
		x.deliver(0)
	}
	x.read(1, leastRing)
	x.deliver(1)
	require.Equal(t, uint64(leastRing), x.ends[0].line.flow.out.consumed.Load())
	require.Zero(t, x.ends[0].line.flow.vacant(leastRing/4))
	x.complete(0)
	require.Positive(t, x.ends[0].line.flow.vacant(leastRing/4))
}

func TestAShortMessageIsNotTakenForTheOneBefore(t *testing.T) {
	c := bareConn(leastRing)
	copy(c.line.flow.in.slots, encode(message{produced: 4, granted: messages}, ""))
	c.line.arrive(0)
	require.Nil(t, c.line.ended.Load())
	c.line.flow.in.slots[0] = 5 // a message of one byte
	c.line.arrive(0)
	require.ErrorIs(t, c.line.ended.Load().err, ErrProtocol)
}

// The writing end moves to the ring that it is offered, whatever is under way then, and
// the reading end finds each byte in the ring that it was written to.
func TestTheReaderFollowsTheWriterToTheSecondRing(t *testing.T) {
	for seed := range uint64(30) {
		random := rand.New(rand.NewPCG(seed, 2))
		x := newExchange(t)
		from, to := x.ends[0], x.ends[1]
		to.line.flow.in.second.mem = make([]byte, 4*leastRing)
		var wrote, read uint64
		for range 2000 { // with few bytes, which travel in messages
			switch random.IntN(9) {
			case 0, 7:
				x.deliver(random.IntN(2))
			case 1, 8:
				x.complete(random.IntN(2))
			case 2:
				if random.IntN(4) == 0 && to.line.flow.in.offer.Load() == offerNone {
					to.line.flow.in.offer.Store(offerMade)
				}
				x.serve(1)
			case 3, 4, 5:
				from.line.flow.out.adopt()
				if n := min(from.line.flow.vacant(1+random.IntN(maxInline)), maxInline); n > 0 {
					b := make([]byte, n)
					for i := range b {
						b[i] = byte(wrote % 251)
						wrote++
					}
					x.postBytes(0, b, false)
				}
			case 6:
				b := to.line.flow.readable(0)
				b = b[:random.IntN(len(b)+1)]
				for i := range b {
					require.Equal(t, byte(read%251), b[i], "byte %d", read)
					read++
				}
				to.line.flow.in.consumed.Add(uint64(len(b)))
			}
		}
	}
}
