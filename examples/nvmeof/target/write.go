package target

import (
	"fmt"

	"godat/examples/nvmeof/store"
)

// Writer is a Store that has a place of its own for the data of Writes, and says when they are
// completed: one that brings the blocks to other machines first, for example. The data
// comes to Room and not to Memory; the store brings it to Memory before Done, and from then on
// Reads have it. Flush and Zero are as of any Store, and Close may come before Done.
//
// The target calls Place, and then either Take or Drop, once for each Write, unless Place refuses
// it. These three are called by the goroutine of a queue: they must not block, and
// queues call them at the same time.
type Writer interface {
	store.Store
	// Room is memory for the data of Writes. It stays at its place until Close.
	Room() []byte
	// Place asks for room for the data. The store answers by w.Placed, or refuses the Write by
	// w.Done with an error, in the call or later.
	Place(w *Write)
	// Take says that the data is in its place. The store answers by w.Done, in the call or later.
	Take(w *Write)
	// Drop takes back a Write whose connection has ended before Take. Its place is free again.
	// What the store calls for it from now on has no effect.
	Drop(w *Write)
}

// Write is a Write command for a Writer. It is the Writer's from Place until it calls Done, or
// until Drop.
type Write struct {
	NSID   uint32
	From   Origin
	Offset int  // in the disk, in bytes
	Len    int  // in bytes
	Stable bool // the host wants the blocks to be stable before the command is completed
	At     int  // the offset in Room, or behind it in an Annex, as Placed said

	answers chan<- result // has room for each command
	slot    int32
	open    bool // Place was called, and neither Take nor Drop; owned by the queue
}

// Placed answers Place: the data comes to Room from an offset on. It may be called from any
// goroutine, as Done.
func (w *Write) Placed(at int) {
	w.At = at
	w.answers <- result{command: w.slot}
}

// Done completes the command. An error that is an nvme.StatusError gives the host that status,
// nvme.ANATransitionStatus for example, by which it tries another path; any other error is a
// nvme.WriteFault.
func (w *Write) Done(err error) { w.answers <- result{w.slot, err} }

// NewWrite is a Write that comes from no host: the program gives it to a Writer as a target does, to test or to
// measure it. The answer is the error of the Writer's next answer, by Placed or by Done, for which it waits. The program may
// give the Write again after Done, and change what it says of itself.
func NewWrite() (w *Write, answer func() error) {
	answers := make(chan result, 1)
	return &Write{answers: answers}, func() error { return (<-answers).err }
}

// place begins a Write for a Writer.
func (c *command) place(off, n int) {
	if c.write == nil {
		c.write = &Write{answers: c.q.results, slot: int32(c.slot)}
	}
	w := c.write
	w.NSID, w.From, w.Offset, w.Len, w.Stable, w.open = c.sqe.NSID, c.q.origin(), off, n, c.forced(), true
	c.next = (*command).placed
	c.disk.writer.Place(w)
}

// placed brings the data of a Write to its place, if it has one.
func (c *command) placed(err error) {
	w := c.write
	if err != nil {
		w.open = false
		c.finish(err)
		return
	}
	room, local, at := c.disk.writer.Room(), c.disk.room, w.At
	if a := c.disk.annexed; a != nil && at >= len(room) {
		at -= len(room)
		room, local = a.Annex(), c.disk.annex
	}
	if at < 0 || at > len(room)-w.Len {
		panic(fmt.Sprintf("target: a Writer places %d bytes at %d of %d", w.Len, at, len(room)))
	}
	if c.sqe.Data.IsKeyed() {
		c.next = (*command).arrived
		c.bring(part(local, at, w.Len), 0)
		return
	}
	copy(room[at:], c.inline())
	c.arrived(nil)
}

// arrived gives a Write whose data is in its place to the store.
func (c *command) arrived(_ error) {
	c.write.open = false
	c.next = (*command).finish
	c.disk.writer.Take(c.write)
}

// dropWrites takes back the Writes that no store has taken. The connection is closed, so no data
// comes any more.
func (q *queue) dropWrites() {
	for i := range q.slots.commands {
		if c := &q.slots.commands[i]; c.write != nil && c.write.open {
			c.write.open = false
			c.disk.writer.Drop(c.write)
		}
	}
}
