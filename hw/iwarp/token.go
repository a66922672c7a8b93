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

// haulFor is the haul of a connection, in a program that may use so many processors. Fewer
// calls are better, so a write takes 1 MiB of payload and a message behind it, and a poster
// leaves nothing of such a write to the writer.
//
// Where TCP paces what it sends, what a write gathers beyond a part leaves by timers: 1 MiB at
// once may take twice as long. A peer on another processor then wakes up for a few octets at
// a time, unless the sender pauses between its writes, as the writer does.
func haulFor(procs int, paced bool) haul {
	h := haul{1088 << 10, [holders]int{byPoster: 1152 << 10, byReceiver: 64 << 10, byWriter: 1088 << 10}}
	if paced {
		h.write = 256 << 10
	}
	if paced && procs > 1 {
		h.budgets[byPoster], h.budgets[byWriter] = 256<<10, 512<<10
	}
	return h
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
		if c := l.owner; !c.send.step(by) {
			c.flush()
		}
		if l.token.Release() {
			return
		}
	}
}
