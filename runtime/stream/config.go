package stream

import (
	"fmt"
	"math/bits"
	"time"

	"godat/hw"
)

// Config says what a connection, or each connection of a listener, is made of. The zero
// value is good.
type Config struct {
	// Ring is how many bytes the peer may send ahead of what the program has read; 0 means
	// 256 KiB. It is rounded up to a power of two, from 4 KiB to 1 GiB. Each direction of a
	// connection has the value of the end that reads. That memory is taken once 2 KiB
	// wait to be read: a connection that carries little has a ring of 4 KiB.
	Ring int
	// Linger bounds how long Close waits until the bytes written have been sent; 0 means
	// two seconds. It does not wait for the peer to read them. A negative value breaks the
	// connection at once: what was not sent is lost, and the peer's reader gets an error.
	Linger time.Duration
	// Backlog is the most requests of peers that wait for Accept; 0 means 1024. The
	// listener refuses further ones. Over iwarp as many peers of one address may be about to
	// connect at a time: where more dial at once, say 4000 from one host, it is as large.
	Backlog int

	// Adapter is for a Dialer or Listen without an adapter: the name by which [dat.Open] opens
	// one, such as "ibv:mlx5_0"; empty means "iwarp". All that name the same one share it, from
	// the first to the last: it is closed with the last listener or connection.
	Adapter string
	// TCP is for the same: where Adapter names what this machine does not have, the system's TCP
	// takes its place. The connections are *net.TCPConn then, and the peer's program must have
	// come to the same: a stream and a TCP connection do not understand each other. A name that is misspelled,
	// or whose package the program does not import, is one that the machine does not have, too:
	// Listener.Addr's and a connection's Network are "tcp" then.
	TCP bool
}

const (
	defaultRing   = 256 << 10
	leastRing     = 4 << 10 // and the first ring of every connection
	mostRing      = 1 << 30
	defaultLinger = 2 * time.Second

	// A burst of dialers waits, as on TCP: an http.Transport may dial one connection for
	// each request that finds none idle, long before the server accepts the first.
	defaultBacklog = 1024

	messages   = 16  // receives posted, and messages outstanding, at each end
	receiveLot = 4   // receives posted again at a time
	sendLot    = 8   // messages for which one completion is made
	slotSize   = 256 // bytes of a message, at most
	maxInline  = slotSize - headerSize

	mostPiece = 256 << 10 // bytes of a write, at most
	mostImage = 2 * mostPiece

	// leastImage is the least image of a connection that has its second ring: as many bytes
	// as there are messages under way, of one kilobyte each.
	leastImage = 16 << 10
)

func (cfg *Config) complete() error {
	switch {
	case cfg.Ring == 0:
		cfg.Ring = defaultRing
	case cfg.Ring < 0 || cfg.Ring > mostRing:
		return fmt.Errorf("stream: Config.Ring is %d; it may be up to %d: %w", cfg.Ring, mostRing, hw.ErrInvalidParameter)
	}
	if cfg.Backlog < 0 {
		return fmt.Errorf("stream: Config.Backlog is %d; it may not be negative: %w", cfg.Backlog, hw.ErrInvalidParameter)
	}
	cfg.Ring = max(leastRing, 1<<bits.Len(uint(cfg.Ring-1)))
	if cfg.Backlog == 0 {
		cfg.Backlog = defaultBacklog
	}
	if cfg.Linger == 0 {
		cfg.Linger = defaultLinger
	}
	return nil
}
