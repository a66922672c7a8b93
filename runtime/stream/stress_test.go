package stream

import (
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Both ends write and read pieces of random lengths, with deadlines that pass now and then.
// Every byte arrives once, in its place.
func TestPiecesOfAnyLengthArriveInOrderWhateverDeadlinesPass(t *testing.T) {
	size := 24 << 20
	if testing.Short() {
		size = 4 << 20
	}
	for _, ring := range []int{leastRing, 64 << 10, 1 << 20} {
		t.Run(fmt.Sprintf("ring=%d", ring), func(t *testing.T) {
			onEachWith(t, Config{Ring: ring}, func(t *testing.T, r *rig) {
				client, server := r.pair()
				seed := rand.Uint64()
				t.Logf("seed %d", seed)
				done := make(chan error, 4)
				for i, c := range []*Conn{client, server} {
					go func() { done <- writePieces(c, size, rand.New(rand.NewPCG(seed, uint64(i)))) }()
					go func() { done <- readPieces(c, size, rand.New(rand.NewPCG(seed, uint64(2+i)))) }()
				}
				for range cap(done) {
					require.NoError(t, <-done)
				}
			})
		})
	}
}

// stamp writes the bytes of a stream whose every byte says where it is.
func stamp(p []byte, at int) {
	for i := range p {
		p[i] = stampAt(at + i)
	}
}

func stampAt(at int) byte { return byte(at ^ at>>8*7 ^ at>>16*13) }

// piece is a random length: of any order of magnitude.
func piece(random *rand.Rand) int { return 1 + random.IntN(1<<(1+random.IntN(21))) }

// soon is a deadline that may pass, or none.
func soon(random *rand.Rand) time.Time {
	if random.IntN(2) == 0 {
		return time.Time{}
	}
	return time.Now().Add(time.Duration(random.IntN(1<<random.IntN(22))) * time.Nanosecond)
}

func writePieces(c *Conn, size int, random *rand.Rand) error {
	p := make([]byte, 2<<20)
	for at := 0; at < size; {
		b := p[:min(piece(random), size-at)]
		stamp(b, at)
		if err := c.SetWriteDeadline(soon(random)); err != nil {
			return err
		}
		n, err := c.Write(b)
		if err != nil && !errors.Is(err, os.ErrDeadlineExceeded) {
			return err
		}
		at += n
		clear(b)
	}
	return errors.Join(c.SetWriteDeadline(time.Time{}), c.CloseWrite())
}

func readPieces(c *Conn, size int, random *rand.Rand) error {
	p := make([]byte, 2<<20)
	for at := 0; ; {
		b := p[:piece(random)]
		if err := c.SetReadDeadline(soon(random)); err != nil {
			return err
		}
		n, err := c.Read(b)
		for i := range b[:n] {
			if b[i] != stampAt(at+i) {
				return fmt.Errorf("byte %d, %d of a Read of %d of %d: %d in the place of %d", at+i, i, n, len(b), b[i], stampAt(at+i))
			}
		}
		at += n
		clear(b) // a race with the device, if it still knows b
		switch {
		case err == io.EOF && at == size:
			return nil
		case err == io.EOF:
			return io.ErrUnexpectedEOF
		case err != nil && !errors.Is(err, os.ErrDeadlineExceeded):
			return err
		}
	}
}
