package program

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"slices"
	"time"

	"godat/examples/nvmeof/host"
	"godat/examples/nvmeof/nvme"
)

// hand is a goroutine of a host, with blocks of its own.
type hand struct {
	u     *initiator
	disk  *host.Disk
	who   string
	draw  *rand.Rand
	known []sector
	at    int // the first block
}

// mostCommand is the most time that a command takes, whatever befalls the network.
const mostCommand = 2 * time.Minute

// value is one that no block had before.
func (h *hand) value() uint64 { return h.draw.Uint64() | 1 }

// filled are blocks of a value.
func filled(value uint64, count int) []byte {
	return bytes.Repeat(binary.LittleEndian.AppendUint64(nil, value), count*unit/8)
}

// once runs one command. The first one reads all blocks.
func (h *hand) once(ctx context.Context, first bool) error {
	time.Sleep(time.Duration(h.draw.IntN(100)) * time.Millisecond)
	count := 1 + h.draw.IntN([]int{2, portion - 1}[h.draw.IntN(2)])
	from := h.draw.IntN(portion - count)
	if first {
		from, count = 0, portion
	}
	off, mine := int64(h.at+from)*unit, h.known[from:from+count]
	began := time.Now()
	var err error
	switch kind := h.draw.IntN(8); {
	case first || kind < 2:
		b := make([]byte, count*unit)
		if _, err = h.disk.ReadAt(b, off); err == nil {
			h.read(b, mine)
		}
	case kind == 2:
		err = h.write(0, mine, false, func([]byte) error { return h.disk.WriteZeroes(ctx, off, int64(count)*unit, false) })
	case kind == 3:
		err = h.flush(ctx)
	case kind == 4:
		err = h.compare(mine, off)
	default:
		stable := kind == 5
		err = h.write(h.value(), mine, stable, func(b []byte) error {
			if stable {
				_, err := h.disk.WriteStable(b, off)
				return err
			}
			_, err := h.disk.WriteAt(b, off)
			return err
		})
	}
	if took := time.Since(began); took > mostCommand {
		h.u.w.Wrong("%s: a command took %v: %v", h.who, took, err)
	}
	return err
}

// read judges what was read: from now on the blocks have that.
func (h *hand) read(b []byte, mine []sector) {
	for k := range mine {
		is := b[k*unit:][:unit]
		value := binary.LittleEndian.Uint64(is)
		if !bytes.Equal(is, filled(value, 1)) {
			h.u.w.Wrong("%s: a block has parts of several writes: %x", h.who, is[:16])
			return
		}
		if !slices.Contains(mine[k].now, value) {
			h.u.w.Wrong("%s: block %d has %x, and not one of %x", h.who, k, value, mine[k].now)
		}
		mine[k].now = []uint64{value}
	}
	h.u.w.Step(h.who, "has read %d blocks", len(mine))
}

// write writes a value: as long as there is no answer, the blocks have it or what they had.
func (h *hand) write(value uint64, mine []sector, stable bool, do func(b []byte) error) error {
	for k := range mine {
		mine[k].now, mine[k].stable = append(mine[k].now, value), append(mine[k].stable, value)
	}
	err := do(filled(value, len(mine)))
	for k := range mine {
		if err == nil {
			mine[k].now = []uint64{value}
		}
		if err == nil && stable {
			mine[k].stable = []uint64{value}
		}
	}
	h.u.w.Step(h.who, "has written %x to %d blocks, for good: %v: %v", value, len(mine), stable, err)
	return err
}

// flush makes stable what the hand has written.
func (h *hand) flush(ctx context.Context) error {
	err := h.disk.Flush(ctx)
	for k := range h.known {
		if err == nil {
			h.known[k].stable = slices.Clone(h.known[k].now)
		}
	}
	h.u.w.Step(h.who, "has flushed: %v", err)
	return err
}

// compare compares blocks with what they may have, or with what they never had.
func (h *hand) compare(mine []sector, off int64) error {
	var want []byte
	sure := true
	for k := range mine {
		want = append(want, filled(mine[k].now[0], 1)...)
		sure = sure && len(mine[k].now) == 1
	}
	other := h.draw.IntN(2) == 0
	if other {
		want[h.draw.IntN(len(want))] ^= 1
	}
	err := h.disk.Compare(want, off)
	differs := errors.Is(err, nvme.StatusError(nvme.CompareFailure))
	switch {
	case err != nil && !differs:
		return err
	case err == nil && other && sure:
		h.u.w.Wrong("%s: blocks compare as what they never had", h.who)
	case differs && !other && sure:
		h.u.w.Wrong("%s: blocks differ from what they have", h.who)
	}
	h.u.w.Step(h.who, "has compared %d blocks, which differ: %v", len(mine), differs)
	return nil
}
