package iwarp

// The number of bytes that a holder of a connection's token may send before it leaves the
// rest to the writer. The writer itself lets other goroutines run then; see writer.run.
const (
	posterBudget   = 256 << 10
	receiverBudget = 64 << 10
	writerBudget   = 512 << 10
)

// kick makes sure that a holder of the token looks for work after this call: the present
// one, or the caller itself if the token is free.
func (l *link) kick(budget int) {
	if l.token.TakeOrKick() {
		l.run(budget)
	}
}

// run does the holder's work and releases the token.
func (l *link) run(budget int) {
	for {
		l.owner.step(budget)
		if l.token.Release() {
			return
		}
	}
}
