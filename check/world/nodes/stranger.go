package nodes

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"time"

	"godat/runtime/rpc"
)

// A stranger says what a member says, in a term that no election has come to: a node from another life of the volume, or
// somebody who means harm. A term that is kept stays for ever, and the highest one ends the engine.

// strange has a stranger, as a member, say to another one that it leads.
func (v *volume) strange(to *member, draw *rand.Rand) {
	from := v.any(draw)
	for from == to {
		from = v.any(draw)
	}
	term := [...]uint64{1 << 41, 1 << 63, math.MaxUint64}[draw.IntN(3)]
	err := v.say(to.addr, append(v.note(from.id, to.id), heartbeat(from.id, to.id, term)...))
	v.w.Step(to.host, "a stranger says, as node %d, that it leads in term %d: %v", from.id, term, err)
	var refusal *rpc.Error
	switch {
	case err == nil:
		v.w.Wrong("%s: node %d has heard a stranger whose term is %d", v.name, to.id, term)
	case errors.As(err, &refusal) && !strings.Contains(refusal.Text, "term"):
		v.w.Wrong("%s: node %d does not understand the stranger: %v", v.name, to.id, err)
	}
}

// methodMessage is that of a note with messages of engines: see examples/volume/node/lanes.go.
const methodMessage = 1

// say calls a node once, if it is there.
func (v *volume) say(addr string, text []byte) error {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	client, err := rpc.Dial(ctx, v.operator, addr, rpc.Config{Calls: 1})
	if err != nil {
		return err
	}
	_, err = client.Call(ctx, rpc.Call{Method: methodMessage, Payload: text}, nil)
	_ = client.Close() // the node may have done so
	return err
}

// note is what one member's call to another begins with: see examples/volume/node/wire.go.
func (v *volume) note(from, to uint64) []byte {
	l := layout(v.id)
	terms := sha256.Sum256(fmt.Appendf(nil, "%q=%q\n%q=%q\n%q=%q\n%q=%q\n%q=%q\n", "size", fmt.Sprint(size),
		"slots", fmt.Sprint(l.Slots), "slot-size", fmt.Sprint(l.SlotSize), "ids", fmt.Sprint(l.Nodes), "tick", tick.String()))
	b := append([]byte("gv\x01\x00"), v.id[:]...)
	b = append(b, terms[:8]...)
	b = binary.LittleEndian.AppendUint64(b, from)
	b = binary.LittleEndian.AppendUint64(b, to)
	return append(b, make([]byte, 8+8+1)...)
}

// heartbeat is one of a leader, with its length before it: four fields in protobuf's form.
func heartbeat(from, to, term uint64) []byte {
	const kind = 8
	b := make([]byte, 4)
	for field, value := range []uint64{kind, to, from, term} {
		b = binary.AppendUvarint(append(b, byte(field+1)<<3), value)
	}
	binary.LittleEndian.PutUint32(b, uint32(len(b)-4))
	return b
}
