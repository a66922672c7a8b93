package node

import (
	"godat/examples/nvmeof/store"
	"godat/examples/nvmeof/target"
)

// Device is the volume's disk as a target's store, at this node: one that follows brings commands to its leader. The node
// must run.
type Device struct {
	c *consensus
}

var (
	_ target.Annexed = (*Device)(nil)
	_ target.Reader  = (*Device)(nil)
	_ target.Zeroer  = (*Device)(nil)
	_ target.Copier  = (*Device)(nil)
	_ store.Prober   = (*Device)(nil)
)

// Device is the volume's disk.
func (n *Node) Device() *Device { return &Device{n.consensus} }

// Memory implements store.Store. What it has may be read after Probe.
func (d *Device) Memory() []byte { return d.c.disk.Memory() }

// Volatile implements store.Store: what was answered is stable on a majority.
func (d *Device) Volatile() bool { return false }

// Flush implements store.Store.
func (d *Device) Flush(int, int) error { return nil }

// Zero implements store.Store.
func (d *Device) Zero(off, n int) error { return d.ZeroFor(target.Origin{}, off, n) }

// ZeroFor implements target.Zeroer.
func (d *Device) ZeroFor(from target.Origin, off, n int) error {
	if n == 0 {
		return nil
	}
	done := make(chan error, 1)
	d.tell(func() { d.c.zero(from, off, n, func(err error) { done <- err }) }, func(err error) { done <- err })
	return <-done
}

// ZeroPiece implements target.Zeroer: a range is one entry of the log, whose length is a number of 32 bits.
func (d *Device) ZeroPiece() int { return 1 << 30 }

// Close implements store.Store. The node ends by the context of Run.
func (d *Device) Close() error { return nil }

// Room implements target.Writer.
func (d *Device) Room() []byte { return d.c.journal.Memory() }

// Annex implements target.Annexed: it is where data comes that goes on to the leader.
func (d *Device) Annex() []byte { return d.c.annex }

// Data is where the data of a write comes that is placed.
func (d *Device) Data(w *target.Write) []byte {
	if at := w.At - len(d.Room()); at >= 0 {
		return d.Annex()[at:][:w.Len]
	}
	return d.Room()[w.At:][:w.Len]
}

// Place implements target.Writer.
func (d *Device) Place(w *target.Write) { d.tell(func() { d.c.enter(w) }, w.Done) }

// Take implements target.Writer.
func (d *Device) Take(w *target.Write) { d.tell(func() { d.c.take(w) }, w.Done) }

// Drop implements target.Writer.
func (d *Device) Drop(w *target.Write) { d.c.events.put(func() { d.c.drop(w) }) }

// Gate implements target.Reader.
func (d *Device) Gate(r *target.Read) { d.tell(func() { d.c.gate(r) }, r.Done) }

// Probe implements store.Prober. Zeros that are not written yet come first. A node whose disk can't be read or written to
// ends: another one has the blocks.
func (d *Device) Probe(off, n int, _ bool) error {
	err := d.c.disk.Settle(off, n)
	if err == nil {
		err = d.c.disk.Probe(off, n)
	}
	if err != nil {
		d.c.fail(err)
	}
	return err
}

// Copy implements target.Copier. A rebuild may have begun since the gate.
func (d *Device) Copy(to []byte, off int) error {
	if d.c.disk.Copy(to, off) != nil {
		return errElsewhere
	}
	return nil
}

// Same implements target.Copier.
func (d *Device) Same(as []byte, off int) (bool, error) {
	same, err := d.c.disk.Same(as, off)
	if err != nil {
		return false, errElsewhere
	}
	return same, nil
}

// tell gives run a function. A node that has ended refuses.
func (d *Device) tell(f func(), done func(error)) {
	if !d.c.events.put(f) {
		done(errChange)
	}
}
