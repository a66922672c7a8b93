package transaction

import (
	"fmt"

	"godat/examples/dattest/wire"
)

// barriers is how many operations at the end of the list are there for validation: the
// server says that it sends nothing more, the client that it has validated, and the
// server that it has validated, too.
const barriers = 3

// WithBarriers adds the barriers to the operations of a test that validates.
func WithBarriers(ops []wire.Op) []wire.Op {
	for _, server := range [barriers]bool{true, false, true} {
		ops = append(ops, wire.Op{Server: server, Transfer: wire.SendRecv, Segments: 1, Size: 4096})
	}
	return ops
}

// pattern is the value of every byte in an iteration.
func pattern(iteration uint32) byte { return byte(iteration + 1) }

// validate checks what has come, after the barrier that says that everything has come,
// and fills the memory for the next iteration.
func (t *thread) validate(op int, iteration uint32) error {
	n := len(t.side.Test.Ops)
	at := n - barriers
	if t.side.Server {
		at = n - barriers + 1
	}
	if !t.side.Test.Validate || op != at {
		return nil
	}
	if err := t.check(iteration); err != nil {
		return err
	}
	if iteration+1 < t.side.Test.Iterations {
		t.fill(iteration + 1)
	}
	return nil
}

// fill writes the pattern to all memory that this side sends or writes, and that the
// peer reads.
func (t *thread) fill(iteration uint32) {
	for _, e := range t.ends {
		for op, o := range e.validated() {
			if e.ours(o) == (o.Transfer == wire.RDMARead) {
				continue
			}
			b := e.pools[op].Bytes()
			for i := range b {
				b[i] = pattern(iteration)
			}
		}
	}
}

// validated returns the operations without the barriers.
func (e *end) validated() []wire.Op {
	ops := e.t.side.Test.Ops
	return ops[:len(ops)-barriers]
}

// check compares everything that has come with the pattern.
func (t *thread) check(iteration uint32) error {
	want := pattern(iteration)
	for _, e := range t.ends {
		for op, o := range e.validated() {
			if e.ours(o) != (o.Transfer == wire.RDMARead) {
				continue
			}
			for i, got := range e.arrived(op, o) {
				if got != want {
					return fmt.Errorf("endpoint %d, operation %d (%v): validation error: byte %d is %#x, expected %#x",
						e.index, op, o.Transfer, i, got, want)
				}
			}
		}
	}
	return nil
}

// arrived returns the bytes that an operation has brought. The peer's write fills the
// region from its beginning, whatever the buffers, and so does a read that has more
// segments than the device scatters to.
func (e *end) arrived(op int, o wire.Op) []byte {
	if o.Transfer == wire.RDMAWrite || len(e.sink(op, o)) < int(o.Segments) {
		return e.pools[op].Bytes()[:o.Bytes()]
	}
	var all []byte
	for i := range int(o.Segments) {
		all = append(all, e.pools[op].Buffer(i)...)
	}
	return all
}
