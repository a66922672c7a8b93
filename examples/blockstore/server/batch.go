package server

import (
	"go.uber.org/zap"

	"godat/examples/blockstore/proto"
	"godat/examples/blockstore/store"
	dat "godat/runtime"
)

// batch gathers PUTs for one transaction, because a transaction costs one write to the
// disk however many blocks it has.
type batch struct {
	puts   []put
	blocks []store.Block
	arena  []byte // memory of the blocks; it never moves
}

// put is a PUT that waits for its transaction.
type put struct {
	session *session
	buffer  *dat.Buffer // in which the request came
	request proto.Message
}

// batchBytes is how many bytes are gathered before a commit is due.
const batchBytes = 4 << 20

func newBatch() batch { return batch{arena: make([]byte, 0, batchBytes+proto.MaxBlock)} }

// due reports whether to commit: because enough is gathered, or because no event waits.
func (b *batch) due(waiting int) bool {
	return len(b.puts) > 0 && (waiting == 0 || len(b.arena) >= batchBytes)
}

// copy copies data to memory of the batch; add keeps the copy there, drop takes it
// away.
func (b *batch) copy(data []byte) []byte {
	at := len(b.arena)
	b.arena = append(b.arena, data...)
	return b.arena[at:]
}

func (b *batch) drop(data []byte) { b.arena = b.arena[:len(b.arena)-len(data)] }

// add gathers a copied block.
func (b *batch) add(p put, data []byte) {
	b.puts = append(b.puts, p)
	b.blocks = append(b.blocks, store.Block{ID: p.request.ID, Data: data})
	p.session.gathered++
}

// commit stores the gathered blocks and answers their PUTs.
func (s *Server) commit() {
	b := &s.batch
	if len(b.puts) == 0 {
		return
	}
	status := proto.OK
	if err := s.store.Put(b.blocks); err != nil {
		s.log.Error("store", zap.Int("blocks", len(b.blocks)), zap.Error(err))
		status = proto.Failed
	}
	for i := range b.puts {
		p := &b.puts[i]
		p.session.gathered--
		if !p.session.gone {
			p.session.check(p.session.reply(p.buffer, &p.request, status))
		}
	}
	clear(b.puts)
	b.puts, b.blocks, b.arena = b.puts[:0], b.blocks[:0], b.arena[:0]
}
