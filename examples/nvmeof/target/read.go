package target

import "godat/examples/nvmeof/store"

// Reader is a Store that says when a Read or a Compare may see its memory: one that first asks other
// machines whether it has the newest blocks, for example.
type Reader interface {
	store.Store
	// Gate asks. The store answers by r.Done, in the call or later. Gate is called by the
	// goroutine of a queue: it must not block, and queues call it at the same time.
	Gate(r *Read)
}

// Copier is a Store that copies and compares a range as it is between two Writes. A Read of 4 KiB or less gets such a
// copy, and a Compare compares each 4 KiB so: of a block neither has a part from before a Write and a part from behind it.
type Copier interface {
	store.Store
	// Copy copies a range of the memory. Goroutines of queues call it at the same time: it may wait for a moment. An error
	// is as one of Read.Done: what a Reader has allowed may be no more when it is copied.
	Copy(to []byte, off int) error
	// Same reports whether the range at an offset is as these bytes, 4 KiB at most. It is called as Copy is.
	Same(as []byte, off int) (bool, error)
}

// Read is a Read or a Compare that waits for a Reader. It is the Reader's from Gate until it calls
// Done.
type Read struct {
	NSID   uint32
	Offset int // in the disk, in bytes
	Len    int // in bytes

	answers chan<- result // has room for each command
	slot    int32
}

// Done answers Gate: the memory has all that the command may return, or the command fails with an
// error as that of Write.Done. It may be called from any goroutine, also when the connection has ended.
func (r *Read) Done(err error) { r.answers <- result{r.slot, err} }

// NewRead is a Read that comes from no host, as [NewWrite] is: the program gives it to a Reader, and the answer is the
// error of the Reader's Done, for which it waits. The program may give the Read again after that.
func NewRead() (r *Read, answer func() error) {
	answers := make(chan result, 1)
	return &Read{answers: answers}, func() error { return (<-answers).err }
}

// gate asks a Reader before a Read or a Compare.
func (c *command) gate(off, n int) {
	if c.read == nil {
		c.read = &Read{answers: c.q.results, slot: int32(c.slot)}
	}
	c.read.NSID, c.read.Offset, c.read.Len = c.sqe.NSID, off, n
	c.next = (*command).gated
	c.disk.reader.Gate(c.read)
}

// gated goes on with a Read or a Compare that a Reader has answered.
func (c *command) gated(err error) {
	if err != nil {
		c.finish(err)
		return
	}
	off, n, _ := c.span()
	c.readOrCompare(off, n)
}
