package iwarp

// holder says who holds a connection's token, and so how much it may send.
type holder uint8

const (
	byPoster   holder = iota
	byReceiver        // also for the network and timers, which come by the receiver
	byWriter          // alone it may block
	holders
)

// haul says how many bytes one write gathers, and how many each holder may send before it
// leaves the rest to the writer. The writer itself lets other goroutines run then; see
// writer.run.
type haul struct {
	write   uint64
	budgets [holders]int
}

// haulFor is the haul of a program that may use so many processors. Where the peer is in
// the same program and there is another processor for it, it reads what came by one write
// while the next is written. On one processor it can't: there fewer calls are better, and
// a write takes 1 MiB of payload and a message behind it. A poster then leaves nothing of
// such a write to the writer.
func haulFor(procs int) haul {
	if procs == 1 {
		return haul{1088 << 10, [holders]int{byPoster: 1152 << 10, byReceiver: 64 << 10, byWriter: 1088 << 10}}
	}
	return haul{256 << 10, [holders]int{byPoster: 256 << 10, byReceiver: 64 << 10, byWriter: 512 << 10}}
}

// kick makes sure that a holder of the token looks for work after this call: the present
// one, or the caller itself if the token is free.
func (l *link) kick(by holder) {
	if l.token.TakeOrKick() {
		l.run(by)
	}
}

// run does the holder's work and releases the token.
func (l *link) run(by holder) {
	for {
		l.owner.step(by)
		if l.token.Release() {
			return
		}
	}
}
