package runtime

import (
	"godat/ep"
	"godat/evd"
	"godat/mem"
)

// Buffer is a piece of registered memory with a length and one owner at a time: the
// pool, the program, or an operation. [mem.BufferPool.Get] and [Conn.Message] give
// one. Segment names it to a post, Remote to a peer; only the owner calls its
// methods. All of them: go doc godat/mem Buffer.
type Buffer = mem.Buffer

// BufferPool is registered memory cut into buffers of one size. [mem.PZ.NewBufferPool]
// makes one; Get and Put take no lock and allocate nothing. Any goroutine may call its
// methods. All of them: go doc godat/mem BufferPool.
type BufferPool = mem.BufferPool

// BufferPoolConfig says how many buffers a pool has, of which size and privileges.
// Its field Debug finds buffers that are lost or used twice. All of them:
// go doc godat/mem BufferPoolConfig.
type BufferPoolConfig = mem.BufferPoolConfig

// Contexts keeps a T for each outstanding operation, under the cookie that the
// operation is posted with. [NewContexts] makes one. Any goroutine may call Put and
// Take, which take no lock and allocate nothing. More: go doc godat/evd Contexts.
type Contexts[T any] = evd.Contexts[T]

// NewContexts makes a table for n operations at a time. It panics unless n is within 1
// and 1 << 20.
func NewContexts[T any](n int) *Contexts[T] { return evd.NewContexts[T](n) }

// Credits count the receives that the peer has posted and this end has not used, so
// that a sender never outruns its peer. They put nothing on the wire: the two programs
// agree on how one tells the other. Any goroutine may call their methods. All of them:
// go doc godat/ep Credits.
type Credits = ep.Credits

// NewCredits makes credits for a peer that has posted n receives. It panics if n is
// negative.
func NewCredits(n int) *Credits { return ep.NewCredits(n) }

// Outbox gathers requests for an endpoint and posts them together, by one call of the
// device. One goroutine at a time uses it. It allocates nothing once it is made. All
// methods: go doc godat/ep Outbox.
type Outbox = ep.Outbox

// NewOutbox makes an outbox that holds n requests for an endpoint. It panics unless n
// is within 1 and 2^20.
func NewOutbox(e *Endpoint, n int) *Outbox { return ep.NewOutbox(e, n) }
