package peers

import (
	"fmt"
	"math/rand/v2"
	"strings"

	"godat/hw"
)

// program is what peers do to a server. The peers play at the same time.
type program struct {
	server int
	peers  []peer
}

// peer is a connection, or an attempt at one.
type peer struct {
	alike   int // connections that do the same
	begin   beginning
	tuning  int // which of the provider's settings it has
	depth   int // of its own receives
	private variant
	deaf    bool // it takes no event before its end
	steps   []step
	end     ending
}

// step is a lot of equal operations that are posted together, or a wait.
type step struct {
	op       hw.Op
	flags    hw.Flags
	size     int
	count    int
	at       int // where in the peer's memory, or the server's
	content  variant
	seed     uint8 // of the content
	stranger bool  // it names memory that the server did not give
	await    bool  // it waits for something to come; the other fields mean nothing
}

// variant is how far contents are from what a client of the server says.
type variant int

const (
	asClients variant = iota
	damaged           // a client's, with another byte in it
	cut               // a client's, cut or lengthened to the step's size
	random

	variants = int(random) + 1
)

// beginning is how a peer comes.
type beginning int

const (
	connects  beginning = iota
	asClient            // by the package that the server's clients use
	givesUp             // its Dial ends with its context
	halfFrame           // the beginning of a start-up over TCP, and nothing behind it
	noise               // over TCP

	beginnings = int(noise) + 1
)

// ending is how a peer leaves.
type ending int

const (
	inOrder   ending = iota
	abruptly         // Disconnect with Abrupt, and Close
	closes           // Close at once
	vanishes         // its adapter closes under it
	resets           // TCP resets the connection
	halfWay          // it disconnects gracefully and closes before the peer can answer
	lastWords        // it posts its last step again, and closes at once

	endings = int(lastWords) + 1
)

var (
	beginningNames = [...]string{"connects", "asClient", "givesUp", "halfFrame", "noise"}
	endingNames    = [...]string{"inOrder", "abruptly", "closes", "vanishes", "resets", "halfWay", "lastWords"}
	variantNames   = [...]string{"asClients", "damaged", "cut", "random"}
)

// The bounds of a program, so that it takes a second or so.
const (
	mostPeers  = 6
	mostSteps  = 16
	mostAlike  = 24
	mostCount  = 24
	mostBytes  = 256 << 10 // of a step
	programLen = 512
)

// bytesOf are the bytes of the program with a seed.
func bytesOf(seed uint64) []byte {
	b := make([]byte, programLen)
	var key [32]byte
	for i := range 8 {
		key[i] = byte(seed >> (8 * i))
	}
	_, _ = rand.NewChaCha8(key).Read(b)
	return b
}

// choices draws numbers from bytes. When there are none left, it draws 0.
type choices []byte

// below draws a number below n, which is at most 256.
func (c *choices) below(n int) int {
	if len(*c) == 0 {
		return 0
	}
	b := (*c)[0]
	*c = (*c)[1:]
	return int(b) % n
}

// once reports true once in n times.
func (c *choices) once(n int) bool { return c.below(n) == n-1 }

// parse draws a program. Any bytes are one.
func parse(b []byte) program {
	c := choices(b)
	p := program{server: c.below(len(servers))}
	for n := 1 + c.below(mostPeers); len(p.peers) < n; {
		p.peers = append(p.peers, c.peer(p.server))
	}
	return p
}

func (c *choices) peer(server int) (p peer) {
	if p.begin = beginning(c.below(2)); c.once(5) { // connects, asClient
		p.begin = beginning(c.below(beginnings))
	}
	if p.begin == asClient && servers[server].client == nil {
		p.begin = connects
	}
	if p.alike = 1; c.once(8) {
		p.alike += c.below(mostAlike)
	}
	p.tuning, p.depth, p.deaf = c.below(len(tunings)), []int{16, 1, 2, 64}[c.below(4)], c.once(6)
	if c.once(6) {
		p.private = variant(c.below(variants))
	}
	for n := c.below(mostSteps); len(p.steps) < n; {
		p.steps = append(p.steps, c.step(servers[server].longest))
	}
	p.end = ending(c.below(endings))
	return p
}

var ops = [...]hw.Op{
	hw.OpSend, hw.OpSend, hw.OpSend, hw.OpSendInvalidate, hw.OpWrite, hw.OpWrite, hw.OpWriteImm, hw.OpWriteImm,
	hw.OpRead, hw.OpFetchAdd, hw.OpCompareSwap,
}

func (c *choices) step(message int) (s step) {
	if c.once(5) {
		return step{await: true}
	}
	s.op = ops[c.below(len(ops))]
	s.flags = hw.Flags(c.below(16)) // every set of them
	s.size = c.size(message)
	s.at, s.seed, s.stranger = 8*c.below(256), uint8(c.below(256)), c.once(12)
	if s.content = asClients; c.once(2) {
		s.content = variant(c.below(variants))
	}
	s.count = 1
	if c.once(4) {
		s.count = min(1+c.below(mostCount), max(1, mostBytes/max(1, s.size)))
	}
	return s
}

// size draws a number of bytes, often one at an edge.
func (c *choices) size(message int) int {
	edges := [...]int{0, 1, 8, 64, 256, message - 1, message, message + 1, 2 * message, 16 << 10, 64 << 10}
	if n := c.below(len(edges) + 3); n < len(edges) {
		return edges[n]
	}
	return c.below(256)<<6 | c.below(64)
}

func (p program) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "peers of %s:\n", servers[p.server].name)
	for i, p := range p.peers {
		fmt.Fprintf(&b, "  %d (× %d) %s, depth %d, tuning %d, private data %s, deaf %v\n", i, p.alike, beginningNames[p.begin], p.depth, p.tuning, variantNames[p.private], p.deaf)
		for _, s := range p.steps {
			fmt.Fprintf(&b, "      %v\n", s)
		}
		fmt.Fprintf(&b, "      ends: %s\n", endingNames[p.end])
	}
	return b.String()
}

func (s step) String() string {
	if s.await {
		return "await"
	}
	return fmt.Sprintf("%d × %v, %d bytes at %d, flags %v, content %s %d, stranger %v",
		s.count, s.op, s.size, s.at, s.flags, variantNames[s.content], s.seed, s.stranger)
}
