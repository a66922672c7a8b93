package nodes

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"godat/examples/nvmeof/host"
	"godat/examples/nvmeof/identity"
	"godat/examples/nvmeof/nvme"
	dat "godat/runtime"
)

// initiator is a writer that is a host of its own: it reaches one node at a time, by the node's target. It reads what it has
// written, too.
type initiator struct {
	v      *volume
	id     identity.ID
	ia     *dat.IA
	blocks int // where its own begin
	marks  []mark
	draw   *rand.Rand

	at         *member          // that it is connected to, or tries
	controller *host.Controller // nil while it is connected to none
	disk       *host.Disk
}

// attempt is how long the host waits for a connection, or for a command.
const attempt = 3 * time.Second

// subsystem is a volume's.
func subsystem(id identity.ID) string { return fmt.Sprintf("nqn.2026-01.world:volume-%d", id[0]) }

// hostAt is where the host of a volume is.
func (v *volume) hostAt() string { return fmt.Sprintf("10.0.%d.98", v.number) }

// initiator makes the host that is a writer of a number.
func (v *volume) initiator(number int) (*initiator, error) {
	ia, err := v.w.Open(v.hostAt())
	return &initiator{v: v, id: hostOf(number), ia: ia, blocks: number * share, marks: v.marks[number], draw: v.w.Draw(v.draws + 90)}, err
}

// bring implements hand.
func (u *initiator) bring(first, count int, value uint64) (at uint64, err error) {
	if u.draw.IntN(3) == 0 {
		if err := u.read(first, count); err != nil {
			return u.at.id, err
		}
	}
	for k := range count {
		u.marks[first+k].last = value
	}
	b := bytes.Repeat(binary.LittleEndian.AppendUint64(nil, value), count*block/8)
	err = u.do(nvme.IOWrite, first, b)
	return u.at.id, err
}

// read reads blocks, which have what was acknowledged last, or a later attempt. From then on they stay as they were read.
func (u *initiator) read(first, count int) error {
	b := make([]byte, count*block)
	if err := u.do(nvme.IORead, first, b); err != nil {
		return err
	}
	for k := range count {
		is, one := &u.marks[first+k], b[k*block:][:block]
		got := binary.LittleEndian.Uint64(one)
		if got < is.sure || got > is.last || !bytes.Equal(one, bytes.Repeat(one[:8], block/8)) {
			u.v.w.Wrong("%s: its host reads %x of block %d at node %d, and not %d to %d", u.v.name, one[:16], first+k, u.at.id, is.sure, is.last)
		}
		is.sure = max(is.sure, got)
	}
	u.v.w.Step(u.v.hostAt(), "has read %d and %d behind it at %d", first, count-1, u.at.id)
	return nil
}

// do runs a command at the node to which the host is connected. A host ends a connection before it does by another one what
// it has had no answer to.
func (u *initiator) do(op nvme.Opcode, first int, b []byte) error {
	ctx, cancel := context.WithTimeout(context.Background(), attempt)
	defer cancel()
	if u.controller == nil {
		if err := u.connect(ctx); err != nil {
			return err
		}
	}
	n := u.at.up()
	c := u.disk.Command(op)
	c.SetRange(uint64(u.blocks+first), uint32(len(b)/block))
	_, err := u.disk.Do(ctx, c, b)
	if err == nil && (n == nil || u.at.up() != n) {
		err = errors.New("its power was cut meanwhile")
	}
	if err != nil {
		u.leave()
	}
	return err
}

// connect connects to a node, another one than before if it can.
func (u *initiator) connect(ctx context.Context) error {
	all := u.v.list()
	if k := slices.Index(all, u.at); k >= 0 {
		all = slices.Delete(all, k, k+1)
	}
	u.at = all[u.draw.IntN(len(all))]
	c, err := host.Connect(ctx, u.ia, host.Config{
		Addr: u.at.serves, Subsystem: subsystem(u.v.id), ID: u.id, Queues: 1, Depth: 8, Transfer: layout(u.v.id).SlotSize, KeepAlive: 2 * time.Second,
	})
	if err != nil {
		return err
	}
	u.controller = c
	u.disk, err = c.Disk(ctx, 1)
	if err != nil {
		u.leave()
	}
	return err
}

func (u *initiator) end() { u.leave() }

// leave ends the connection.
func (u *initiator) leave() {
	if u.controller != nil {
		_ = u.controller.Close() // of a node that may be gone
		u.controller = nil
	}
}
