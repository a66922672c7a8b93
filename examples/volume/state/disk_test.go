package state

import (
	"bytes"
	"encoding/binary"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"godat/examples/nvmeof/identity"
	"godat/examples/volume/entry"
	"godat/examples/volume/fault"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// volume is that of all disks of these tests.
var volume = identity.ID{1, 2, 3}

func TestADiskOfAnotherVolumeIsRefused(t *testing.T) {
	s := fault.New(Size(4096))
	require.False(t, Made(s))
	require.NoError(t, Make(s, volume))
	require.True(t, Made(s))
	_, err := Open(s, identity.ID{3}, 0)
	require.ErrorContains(t, err, "of volume")
	d, err := Open(s, volume, 0)
	require.NoError(t, err)
	require.NoError(t, d.Apply(1, 1, &entry.Entry{}, nil))
	_, err = d.Release()
	require.NoError(t, err)
	_, err = Open(s, identity.ID{3}, 0)
	require.ErrorContains(t, err, "of volume", "each mark has it")
}

// data is n bytes for an offset that are like no others': each unit of them has its place and
// a number.
func data(off uint64, n int, number uint64) []byte {
	b := make([]byte, n)
	for at := 0; at < n; at += 16 {
		binary.LittleEndian.PutUint64(b[at:], number)
		binary.LittleEndian.PutUint64(b[at+8:], off+uint64(at))
	}
	return b
}

// sealed is an entry with its CRC.
func sealed(e entry.Entry, data []byte) *entry.Entry {
	e = e.Sealed(data)
	return &e
}

// change is an entry and its data.
type change struct {
	entry entry.Entry
	slot  []byte
}

// history is the changes of a disk, from index 1 on. The term of each is its index / 10.
type history struct {
	size    int
	changes []change
}

func (h *history) last() uint64 { return uint64(len(h.changes)) }

// draw adds a change.
func (h *history) draw(t *rapid.T) {
	units := uint64(h.size / entry.Unit)
	off := rapid.Uint64Range(0, units-1).Draw(t, "unit")
	n := rapid.Uint64Range(1, min(units-off, 64)).Draw(t, "units")
	c := change{entry: entry.Entry{Off: off * entry.Unit, Len: uint32(n * entry.Unit)}}
	b := data(c.entry.Off, int(c.entry.Len), h.last()+1)
	switch c.entry.Op = entry.Op(rapid.IntRange(0, 4).Draw(t, "operation")); c.entry.Op {
	case entry.Check, entry.None:
		c.entry = entry.Entry{Op: c.entry.Op}
	case entry.Write:
		c.entry, c.slot = c.entry.Sealed(b), b
	case entry.Small:
		c.entry.Data = b
		c.entry = c.entry.Sealed(b)
	case entry.Zero:
		c.entry = c.entry.Sealed(nil)
	}
	h.changes = append(h.changes, c)
}

// apply applies the change with an index.
func (h *history) apply(d *Disk, index uint64) error {
	c := h.changes[index-1]
	return d.Apply(index, index/10, &c.entry, c.slot)
}

// at is the blocks after the change with an index.
func (h *history) at(index uint64) []byte {
	b := make([]byte, h.size)
	for _, c := range h.changes[:index] {
		to := b[c.entry.Off:][:c.entry.Len]
		clear(to)
		copy(to, c.slot)
		copy(to, c.entry.Data)
	}
	return b
}

// replay applies all changes from the last one on that the disk has.
func (h *history) replay(t *rapid.T, d *Disk) {
	index, term := d.Applied()
	require.Equal(t, index/10, term)
	for index++; index <= h.last(); index++ {
		require.NoError(t, h.apply(d, index))
	}
}

// whole is what a disk has.
func whole(d *Disk) []byte {
	b := bytes.Clone(d.Memory())
	for _, r := range d.blanks {
		clear(b[r.off:r.end])
	}
	return b
}

func seed(t *rapid.T) *rand.Rand { return rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0)) }

// TestADiskHasWhatItReleasedAfterAnyCrash compares a disk with all that was applied to it.
func TestADiskHasWhatItReleasedAfterAnyCrash(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h := history{size: 64 << 10}
		s := fault.New(Size(h.size))
		d, err := Open(s, volume, 0)
		require.NoError(t, err)
		released := uint64(0)
		reopen := func() {
			d, err = Open(s, volume, h.last())
			require.NoError(t, err)
			index, _ := d.Applied()
			require.GreaterOrEqual(t, index, released)
			h.replay(t, d)
		}
		t.Repeat(map[string]func(*rapid.T){
			"apply": func(t *rapid.T) {
				h.draw(t)
				require.NoError(t, h.apply(d, h.last()))
			},
			"release": func(t *rapid.T) {
				released, err = d.Release()
				require.NoError(t, err)
				require.Equal(t, h.last(), released)
			},
			"zero": func(t *rapid.T) { require.NoError(t, d.ZeroNext()) },
			"look": func(t *rapid.T) {
				off := rapid.IntRange(0, h.size-1).Draw(t, "offset")
				n := rapid.IntRange(1, h.size-off).Draw(t, "bytes")
				require.NoError(t, d.Settle(off, n))
				require.True(t, bytes.Equal(h.at(h.last())[off:off+n], d.Memory()[off:off+n]))
			},
			"cut the power during a release": func(t *rapid.T) {
				s.FailAfter(rapid.IntRange(0, 3).Draw(t, "flushes"))
				if index, err := d.Release(); err == nil {
					released = index
				}
				s.Fail(seed(t))
				s.Repair()
				reopen()
			},
			"cut the power": func(t *rapid.T) {
				s.Fail(seed(t))
				reopen()
			},
			"kill": func(*rapid.T) { reopen() },
			"": func(t *rapid.T) {
				require.NoError(t, d.Ready())
				require.True(t, bytes.Equal(h.at(h.last()), whole(d)))
			},
		})
	})
}

// disk makes a disk of 4096 bytes with one write of them.
func disk(t *testing.T) (*fault.Store, *Disk) {
	s := fault.New(Size(4096))
	d, err := Open(s, volume, 0)
	require.NoError(t, err)
	b := data(0, 4096, 1)
	require.NoError(t, d.Apply(1, 1, sealed(entry.Entry{Op: entry.Write, Len: 4096}, b), b))
	return s, d
}

func TestAnEntryThatDoesNotFitChangesNothing(t *testing.T) {
	_, d := disk(t)
	was := bytes.Clone(d.Memory())
	b := data(512, 512, 2)
	good := entry.Entry{Op: entry.Write, Off: 512, Len: 512}.Sealed(b)
	beyond, other := good, good
	beyond.Off = 4096
	other.CRC++
	require.ErrorContains(t, d.Apply(2, 1, &beyond, b), "512 bytes at 4096 of 4096")
	require.ErrorIs(t, d.Apply(2, 1, &other, b), ErrOther)
	require.ErrorIs(t, d.Apply(2, 1, &good, b[:511]), ErrOther)
	require.ErrorContains(t, d.Apply(3, 1, &good, b), "entry 3 follows entry 1")
	require.NoError(t, d.Apply(1, 1, &good, b), "it has that one")
	assert.True(t, bytes.Equal(was, d.Memory()))
	require.NoError(t, d.Apply(2, 1, &good, b))
	assert.True(t, bytes.Equal(b, d.Memory()[512:1024]))
}

func TestACompareIsOfAllBytes(t *testing.T) {
	_, d := disk(t)
	b := data(0, 4096, 1)[512:]
	same, err := d.Compare(512, b)
	require.NoError(t, err)
	assert.True(t, same)
	b[len(b)-1]++
	same, err = d.Compare(512, b)
	require.NoError(t, err)
	assert.False(t, same)
	_, err = d.Compare(1024, b)
	require.ErrorContains(t, err, "3584 bytes at 1024 of 4096")
}

func TestAfterAFlushThatFailedNothingIsReleased(t *testing.T) {
	s, d := disk(t)
	s.FailAfter(0)
	_, err := d.Release()
	require.ErrorIs(t, err, fault.ErrDisk)
	s.Repair()
	_, err = d.Release()
	require.ErrorIs(t, err, fault.ErrDisk)
}

func TestAMarkThatIsDamagedLeavesTheOneBefore(t *testing.T) {
	s, d := disk(t)
	_, err := d.Release()
	require.NoError(t, err)
	require.NoError(t, d.Apply(2, 2, sealed(entry.Entry{Op: entry.Zero, Len: 512}, nil), nil))
	_, err = d.Release()
	require.NoError(t, err)
	index := func() uint64 {
		again, err := Open(s, volume, 0)
		require.NoError(t, err)
		index, _ := again.Applied()
		return index
	}
	require.Equal(t, uint64(2), index())
	s.Flip(8)
	require.Equal(t, uint64(1), index())
	s.Flip(markPage + 8)
	_, err = Open(s, volume, 0)
	require.ErrorIs(t, err, errMarks)
	_, err = Open(fault.New(Size(511)), volume, 0)
	require.ErrorContains(t, err, "a disk of")
}

// A kill may leave a mark in the system's memory. What its entries needed may go when the disk is open.
func TestAMarkThatWasReadIsStable(t *testing.T) {
	for number := range uint64(10) {
		s, d := disk(t)
		s.FailAfter(2) // blocks, and when they were written
		_, err := d.Release()
		require.ErrorIs(t, err, fault.ErrDisk)
		s.Repair()
		d, err = Open(s, volume, 1)
		require.NoError(t, err)
		released, err := d.Release()
		require.NoError(t, err)
		require.Equal(t, uint64(1), released)
		s.Fail(rand.New(rand.NewPCG(number, 0)))
		d, err = Open(s, volume, 1)
		require.NoError(t, err)
		index, _ := d.Applied()
		require.Equal(t, released, index)
	}
}

func TestADiskCountsTheZerosThatItHasToWrite(t *testing.T) {
	d, err := Open(fault.New(Size(4<<20)), volume, 0)
	require.NoError(t, err)
	require.NoError(t, d.Apply(1, 1, sealed(entry.Entry{Op: entry.Zero, Off: 4096, Len: 2 << 20}, nil), nil))
	for left := 2 << 20; left != 0; left -= zeroPiece {
		require.Equal(t, left, d.Zeros())
		require.True(t, d.Zeroing())
		require.NoError(t, d.ZeroNext())
	}
	require.Zero(t, d.Zeros())
}

func TestWhatADiskSaysOfItselfWaitsForNoAccess(t *testing.T) {
	_, d := disk(t)
	d.mu.Lock() // as Apply has it while it writes
	defer d.mu.Unlock()
	index, _ := d.Applied()
	assert.NotZero(t, index)
	assert.False(t, d.CatchingUp())
	assert.Zero(t, d.Checking())
	assert.Zero(t, d.Checked())
	assert.Zero(t, d.Zeros())
}

// zeroed is a disk that has zeros to write, in pieces that touch if they are apart by no more than their length.
func zeroed(t *testing.T, s *fault.Store, pieces, length, apart int) *Disk {
	d, err := Open(s, volume, 0)
	require.NoError(t, err)
	for i := range pieces {
		require.NoError(t, d.Apply(uint64(1+i), 1, sealed(entry.Entry{Op: entry.Zero, Off: uint64(i * apart), Len: uint32(length)}, nil), nil))
	}
	return d
}

func TestRangesOfZerosThatTouchAreOneToBeWrittenLater(t *testing.T) {
	const pieces, length = 3 * mostZeros, 16 << 10
	d := zeroed(t, fault.New(Size(pieces*length)), pieces, length, length)
	require.Equal(t, pieces*length, d.Zeros(), "nothing is written while entries are applied")
	require.Len(t, d.blanks, 1)

	require.NoError(t, d.Apply(pieces+1, 1, sealed(entry.Entry{Op: entry.Write, Len: 2 * length}, make([]byte, 2*length)), make([]byte, 2*length)))
	require.NoError(t, d.Apply(pieces+2, 1, &entry.Entry{Op: entry.Check}, nil))
	require.NoError(t, d.Apply(pieces+3, 1, sealed(entry.Entry{Op: entry.Zero, Len: 2 * length}, nil), nil))
	require.Len(t, d.blanks, 2, "the check is between them")
}

func TestAMarkHasRoomForTheZerosHoweverTheyAreCut(t *testing.T) {
	const pieces, length, apart = 2 * mostZeros, 8 << 10, 16 << 10
	for name, zeros := range map[string]func(t *testing.T, s *fault.Store) *Disk{
		"by what is read": func(t *testing.T, s *fault.Store) *Disk {
			d := zeroed(t, s, 1, pieces*apart, 0)
			for i := range pieces {
				require.NoError(t, d.Settle(i*apart+length, 4096))
			}
			return d
		},
		"by nothing": func(t *testing.T, s *fault.Store) *Disk { return zeroed(t, s, pieces, length, apart) },
	} {
		t.Run(name, func(t *testing.T) {
			s := fault.New(Size(pieces * apart))
			before := s.Memory()[marksLen:][:pieces*apart]
			for i := range before {
				before[i] = 0xa5
			}
			d := zeros(t, s)
			require.Greater(t, d.Zeros(), mostZeros*length, "most are written later")
			want := whole(d)
			released, err := d.Release()
			require.NoError(t, err)
			again, err := Open(s, volume, released)
			require.NoError(t, err)
			index, _ := again.Applied()
			require.Equal(t, released, index)
			require.NotZero(t, again.Zeros())
			require.True(t, bytes.Equal(want, whole(again)))
		})
	}
}

func TestACompareSeesNoPartOfAnEntryThatIsApplied(t *testing.T) {
	_, d := disk(t)
	a, b := bytes.Repeat([]byte{0xa}, 4096), bytes.Repeat([]byte{0xb}, 4096)
	ended := make(chan error)
	write := func(index uint64, data []byte) error {
		return d.Apply(index, 1, sealed(entry.Entry{Op: entry.Small, Len: 4096, Data: data}, data), nil)
	}
	require.NoError(t, write(2, a))
	same := func(as []byte) bool {
		same, err := d.Same(as, 0)
		require.NoError(t, err)
		return same
	}
	require.True(t, same(a))
	require.False(t, same(b))
	go func() {
		var err error
		for index := uint64(3); index < 3000 && err == nil; index += 2 {
			if err = write(index, b); err == nil {
				err = write(index+1, a)
			}
		}
		ended <- err
	}()
	torn := append(bytes.Clone(b[:2048]), a[2048:]...)
	for {
		select {
		case err := <-ended:
			require.NoError(t, err)
			return
		default:
		}
		require.False(t, same(torn))
	}
}

func TestACopyHasNoPartOfAnEntryThatIsApplied(t *testing.T) {
	_, d := disk(t)
	ended := make(chan error)
	go func() {
		var err error
		for index := uint64(2); index < 2000 && err == nil; index++ {
			b := bytes.Repeat([]byte{byte(index)}, 4096)
			err = d.Apply(index, 1, sealed(entry.Entry{Op: entry.Small, Len: 4096, Data: b}, b), nil)
		}
		ended <- err
	}()
	b := make([]byte, 4096)
	for {
		select {
		case err := <-ended:
			require.NoError(t, err)
			return
		default:
		}
		require.NoError(t, d.Copy(b, 0))
		if b[0] == b[8] && b[0] != 0 { // not the data of disk
			require.Equal(t, bytes.Repeat(b[:1], len(b)), b)
		}
	}
}
