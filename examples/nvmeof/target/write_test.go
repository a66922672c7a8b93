package target

import (
	"bytes"
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"godat/examples/nvmeof/host"
	"godat/examples/nvmeof/nvme"
	"godat/examples/nvmeof/store"
)

// journal is a Writer that tells a test of what the target calls, and does nothing else.
type journal struct {
	store.Store
	room                    []byte
	asked, taken, forgotten chan *Write
}

func (j *journal) Volatile() bool { return true }
func (j *journal) Room() []byte   { return j.room }
func (j *journal) Place(w *Write) { j.asked <- w }
func (j *journal) Take(w *Write)  { j.taken <- w }
func (j *journal) Drop(w *Write)  { j.forgotten <- w }

// withJournal serves a journal in place of the fixture's first disk.
func withJournal(f *fixture) *journal {
	j := &journal{newMemory(f.T, 1<<20), make([]byte, 1<<20), make(chan *Write, 9), make(chan *Write, 9), make(chan *Write, 9)}
	require.NoError(f, f.target.Set(1, Namespace{Store: j}))
	return j
}

func TestAWriterHasTheDataOfWritesAtItsOwnPlaceAndCompletesThem(t *testing.T) {
	onEach(t, func(f *fixture) {
		j := withJournal(f)
		d := f.disk(f.connect(nil), 1)
		for i, n := range []int{4096, 128 << 10} { // in the capsule over iwarp, and by an RDMA read
			at, off, b := 8192*(i+1), 256<<10*(i+1), noise(n)
			b[0] ^= byte(i + 1) // each time another first sector
			done := make(chan error, 1)
			go func() {
				_, err := d.WriteStable(b, int64(off))
				done <- err
			}()
			w := <-j.asked
			assert.Equal(f, []any{uint32(1), off, n, true}, []any{w.NSID, w.Offset, w.Len, w.Stable})
			assert.False(f, bytes.Contains(j.room, b[:512]), "no data before there is a place")
			w.Placed(at)
			require.Same(f, w, <-j.taken)
			assert.Equal(f, at, w.At)
			assert.True(f, bytes.Equal(b, j.room[at:at+n]))
			assert.False(f, bytes.Contains(j.Memory(), b[:512]))
			require.Error(f, d.Compare(b[:4096], int64(off)), "the host reads the memory")
			select {
			case err := <-done:
				f.Error("completed before Done: ", err)
			default:
			}
			copy(j.Memory()[off:], j.room[at:at+n])
			w.Done(nil)
			require.NoError(f, <-done)
			require.NoError(f, d.Compare(b, int64(off)))
			assert.Empty(f, j.forgotten)
		}
	})
}

func TestAWriterSaysWhyAWriteFails(t *testing.T) {
	onEach(t, func(f *fixture) {
		j := withJournal(f)
		d := f.disk(f.connect(nil), 1)
		for _, x := range []struct {
			err   error
			taken bool
			want  nvme.Status
		}{
			{nvme.StatusError(nvme.ANATransitionStatus), false, nvme.ANATransitionStatus},
			{nvme.StatusError(nvme.ANAInaccessibleStatus), true, nvme.ANAInaccessibleStatus},
			{errors.New("the journal failed"), false, nvme.WriteFault},
			{errors.New("the journal failed"), true, nvme.WriteFault},
		} {
			done := make(chan error, 1)
			go func() {
				_, err := d.WriteAt(noise(4096), 0)
				done <- err
			}()
			w := <-j.asked
			assert.False(f, w.Stable)
			if x.taken {
				w.Placed(0)
				<-j.taken
			}
			w.Done(x.err)
			var failed nvme.StatusError
			require.ErrorAs(f, <-done, &failed)
			assert.Equal(f, x.want, nvme.Status(failed), "without DoNotRetry")
		}
		assert.Empty(f, j.forgotten)
	})
}

func TestAWriteWhoseConnectionEndsIsTakenOrDropped(t *testing.T) {
	onEach(t, func(f *fixture) {
		j := withJournal(f)
		c, err := host.Connect(f.within(), f.ia, f.config())
		require.NoError(f, err)
		d := f.disk(c, 1)
		write := func() *Write {
			go func() { _, _ = d.WriteAt(noise(4096), 0) }()
			return <-j.asked
		}
		waits, took := write(), write()
		took.Placed(4096)
		require.Same(f, took, <-j.taken)
		closed := make(chan error, 1)
		go func() { closed <- c.Close() }()
		assert.Same(f, waits, <-j.forgotten)
		waits.Placed(0) // the store has not heard of it yet
		took.Done(nil)
		require.NoError(f, <-closed)
		require.NoError(f, f.target.Remove(1))
		assert.Empty(f, j.forgotten, "each Write once")
	})
}

func TestAWriterThatPlacesDataOutsideItsRoomIsAnErrorOfTheProgram(t *testing.T) {
	ns := &namespace{writer: &journal{room: make([]byte, 8192)}}
	q := &queue{}
	for _, at := range []int{-1, 4097, 8192} {
		c := &command{q: q, disk: &disk{namespace: ns}, write: &Write{Len: 4096, At: at}}
		assert.Panics(t, func() { c.placed(nil) })
	}
}

// atOnce is a Writer that answers in the calls.
type atOnce struct {
	store.Store
	room []byte
}

func (a *atOnce) Room() []byte   { return a.room }
func (a *atOnce) Place(w *Write) { w.Placed(8192) }
func (a *atOnce) Take(w *Write) {
	copy(a.Memory()[w.Offset:], a.room[w.At:w.At+w.Len])
	w.Done(nil)
}
func (a *atOnce) Drop(*Write) {}

func TestAWriterMayAnswerInTheCalls(t *testing.T) {
	onEach(t, func(f *fixture) {
		require.NoError(f, f.target.Set(1, Namespace{Store: &atOnce{newMemory(f.T, 1<<20), make([]byte, 1<<20)}}))
		d := f.disk(f.connect(nil), 1)
		for _, n := range []int{4096, 64 << 10} {
			b := noise(n)
			_, err := d.WriteAt(b, 0)
			require.NoError(f, err)
			require.NoError(f, d.Compare(b, 0))
		}
	})
}
