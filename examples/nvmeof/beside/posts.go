package beside

import (
	"context"
	"errors"

	"godat/ep"
	"godat/evd"
	"godat/examples/nvmeof/nvme"
	"godat/hw"
	"godat/hw/event"
	"godat/mem"
	dat "godat/runtime"
)

// posts makes the posts of reads or writes, and nothing else: no capsule is parsed, no
// buffer has an owner, and one goroutine has both ends. What it reaches is what the
// library allows a host and a target that cost nothing themselves.
//
// A command is two messages, each with a receive, and for a read an RDMA write before
// the answer. All of a kind go out as one batch, in which the last request alone has a
// completion.
type posts struct {
	host, target end

	reads  [2 * depth]ep.DTO // of the target: data and answer
	writes [depth]ep.DTO     // of the target: answers
	asks   map[nvme.Opcode]*[depth]ep.DTO
	events [2 * depth]event.Event
}

// end is one end of the connection.
type end struct {
	endpoint *ep.Endpoint
	events   *evd.Dispatcher
	memory   *mem.LMR
	receives [depth]ep.DTO
}

// Where an end's memory has what: receives first, then the messages that go out, then the
// blocks.
const (
	slotSize    = nvme.CommandLen + size
	outAt       = depth * slotSize
	blocksAt    = 2 * depth * slotSize
	postsMemory = blocksAt + depth*size
)

func newPosts(ia *dat.IA) (*posts, error) {
	p := new(posts)
	pz, err := ia.NewPZ()
	if err != nil {
		return nil, err
	}
	for _, e := range []*end{&p.host, &p.target} {
		if err := e.make(ia, pz); err != nil {
			return nil, err
		}
	}
	p.fill()
	return p, p.connect(ia)
}

func (e *end) make(ia *dat.IA, pz *mem.PZ) (err error) {
	if e.events, err = ia.NewDispatcher(evd.Config{QLen: 4 * depth}); err != nil {
		return err
	}
	e.endpoint, err = ia.NewEndpoint(ep.Config{
		PZ: pz, Recv: e.events, Request: e.events, Conn: e.events, Attr: &ep.Attr{MaxRecvDTOs: depth, MaxRequestDTOs: 2 * depth},
	})
	if err != nil {
		return err
	}
	if e.memory, err = pz.Alloc(postsMemory, hw.AllPrivileges); err != nil {
		return err
	}
	for i := range e.receives {
		e.receives[i] = ep.DTO{Segment: e.memory.Segment(i*slotSize, slotSize)}
	}
	_, err = e.endpoint.PostRecvBatch(e.receives[:])
	return err
}

// fill fills in the batches.
func (p *posts) fill() {
	read, write := new([depth]ep.DTO), new([depth]ep.DTO)
	p.asks = map[nvme.Opcode]*[depth]ep.DTO{nvme.IORead: read, nvme.IOWrite: write}
	for i := range depth {
		send := ep.DTO{Op: hw.OpSend, Flags: hw.Suppress}
		answer := send
		answer.Segment = p.target.memory.Segment(outAt+i*slotSize, nvme.CompletionLen)
		p.reads[2*i] = ep.DTO{
			Op: hw.OpWrite, Flags: hw.Suppress, Segment: p.target.memory.Segment(blocksAt+i*size, size), Remote: p.host.memory.Remote(blocksAt+i*size, size),
		}
		p.reads[2*i+1], p.writes[i] = answer, answer
		read[i], write[i] = send, send
		read[i].Segment = p.host.memory.Segment(outAt+i*slotSize, nvme.CommandLen)
		write[i].Segment = p.host.memory.Segment(outAt+i*slotSize, slotSize)
	}
	for _, batch := range [][]ep.DTO{p.reads[:], p.writes[:], read[:], write[:]} {
		batch[len(batch)-1].Flags = hw.Default
	}
}

func (p *posts) connect(ia *dat.IA) error {
	psp, err := ia.NewPSP(ep.PSPConfig{Dispatcher: p.target.events})
	if err != nil {
		return err
	}
	if err := p.host.endpoint.Connect(ep.ConnectConfig{Addr: ia.Attr().Address, Qual: psp.Qual()}); err != nil {
		return err
	}
	ctx := context.Background()
	ev, _, err := p.target.events.Wait(ctx, 1)
	if err == nil {
		err = ep.RequestOf(ev).Accept(p.target.endpoint, nil)
	}
	for _, e := range []*end{&p.target, &p.host} {
		if err == nil {
			ev, _, err = e.events.Wait(ctx, 1)
		}
		if err == nil {
			err = ev.Err()
		}
	}
	return err
}

// run makes the posts of one command for each slot after the other, until ctx is done.
func (p *posts) run(ctx context.Context, op nvme.Opcode) (n int64, err error) {
	answers := p.writes[:]
	if op == nvme.IORead {
		answers = p.reads[:]
	}
	for ; ctx.Err() == nil && err == nil; n += depth {
		_, err = p.host.endpoint.PostBatch(p.asks[op][:])
		if err == nil {
			err = p.taken(&p.target, p.blocks(op), depth)
		}
		if err == nil {
			_, err = p.target.endpoint.PostBatch(answers)
		}
		if err == nil {
			err = p.taken(&p.host, nil, depth+1)
		}
	}
	return n, err
}

// blocks is where the data of writes goes.
func (p *posts) blocks(op nvme.Opcode) []byte {
	if op == nvme.IORead {
		return nil
	}
	return p.target.memory.Bytes()[blocksAt:]
}

// taken takes so many events of an end, at least one for each receive, copies what the
// messages brought to blocks, and posts the receives again. The target has one event more
// from its second batch on, which the next call finds.
func (p *posts) taken(e *end, blocks []byte, n int) error {
	receives := 0
	for n > 0 {
		m, err := e.events.Dequeue(p.events[:])
		if err != nil {
			return err
		}
		for i := range p.events[:m] {
			ev := &p.events[i]
			if ev.Status != hw.StatusSuccess {
				return ev.Err()
			}
			if ev.Op == hw.OpRecv {
				receives++
			}
		}
		if e == &p.target {
			n = depth - receives
		} else {
			n -= m
		}
	}
	for i := 0; i < depth && blocks != nil; i++ {
		copy(blocks[i*size:][:size], e.memory.Bytes()[i*slotSize+nvme.CommandLen:][:size])
	}
	if receives != depth {
		return errors.New("a message is missing")
	}
	_, err := e.endpoint.PostRecvBatch(e.receives[:])
	return err
}
