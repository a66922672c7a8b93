package calls

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"sync/atomic"
	"time"
)

// Kind is a kind of call. A put has a request of Size bytes and an answer of 8; a get has a request
// of 8 bytes, which is the size that it wants, and an answer of Size.
type Kind struct {
	Size int
	Get  bool
}

const shortBytes = 8 // of the answer to a put, and of the request of a get

func (k Kind) String() string {
	if k.Get {
		return "get of " + bytesText(k.Size)
	}
	return "put of " + bytesText(k.Size)
}

func bytesText(n int) string {
	switch {
	case n >= 1<<20 && n%(1<<20) == 0:
		return fmt.Sprintf("%d MiB", n>>20)
	case n >= 1<<10 && n%(1<<10) == 0:
		return fmt.Sprintf("%d KiB", n>>10)
	}
	return fmt.Sprintf("%d B", n)
}

// sent and taken are the bytes of a call at its client.
func (k Kind) sent() int64 {
	if k.Get {
		return shortBytes
	}
	return int64(k.Size)
}

func (k Kind) taken() int64 {
	if k.Get {
		return int64(k.Size)
	}
	return shortBytes
}

// tally is what an end has counted.
type tally struct {
	Calls     int64
	In, Out   int64 // bytes of payloads that came to this end, and that left it
	Deadlines int64 // calls that had a deadline at this end
}

func (t tally) since(before tally) tally {
	return tally{t.Calls - before.Calls, t.In - before.In, t.Out - before.Out, t.Deadlines - before.Deadlines}
}

// work is what a server does for each call, whatever carries it.
type work struct {
	most                     int // bytes of a payload
	body                     []byte
	calls, in, out, deadline atomic.Int64
}

func newWork(most int) *work { return &work{most: most, body: newBody(most)} }

func (w *work) tally() tally {
	return tally{w.calls.Load(), w.in.Load(), w.out.Load(), w.deadline.Load()}
}

func (w *work) count(in, out int, deadline bool) {
	w.calls.Add(1)
	w.in.Add(int64(in))
	w.out.Add(int64(out))
	if deadline {
		w.deadline.Add(1)
	}
}

// put takes what the server has seen of a request, and returns the answer.
func (w *work) put(request view, deadline bool) uint64 {
	w.count(request.length, shortBytes, deadline)
	return request.stamp()
}

// get takes a request, and returns the answer's size.
func (w *work) get(request []byte, deadline bool) (size int, err error) {
	if len(request) != shortBytes {
		return 0, fmt.Errorf("a get of %d bytes, not %d", len(request), shortBytes)
	}
	n := binary.BigEndian.Uint64(request)
	if n > uint64(w.most) {
		return 0, fmt.Errorf("%d bytes are wanted of %d", n, w.most)
	}
	w.count(len(request), int(n), deadline)
	return int(n), nil
}

// hasDeadline reports whether a context has the deadline of its call.
func hasDeadline(ctx context.Context) bool {
	until, ok := ctx.Deadline()
	return ok && time.Until(until) <= limit+time.Second
}

// pattern is byte i of an answer to a get.
func pattern(i int) byte { return byte(i*7+i>>8) | 1 }

func newBody(size int) []byte {
	b := make([]byte, size)
	for i := range b {
		b[i] = pattern(i)
	}
	return b
}

// view is what is looked at of a payload: its length, the first 8 bytes, and the ones in the middle and at
// the end. To look at each byte would cost all rows the same.
type view struct {
	length    int
	first     uint64
	mid, last byte
}

func look(b []byte) (v view) {
	v.length = len(b)
	if len(b) >= shortBytes {
		v.first, v.mid, v.last = binary.BigEndian.Uint64(b), b[len(b)/2], b[len(b)-1]
	}
	return v
}

// stamp is the answer to a put: it tells one request from another, by number and by length.
func (v view) stamp() uint64 {
	return v.first ^ uint64(v.length)<<32 ^ uint64(v.mid)<<8 ^ uint64(v.last)
}

// blank makes a room unlike an answer where look looks.
func blank(room []byte) {
	clear(room[:shortBytes])
	room[len(room)/2], room[len(room)-1] = 0, 0
}

// isAnswer reports whether what came is the answer to a get of that size.
func (v view) isAnswer(size int) bool {
	return v.length == size && v.mid == pattern(size/2) && v.last == pattern(size-1) && byte(v.first>>56) == pattern(0)
}

var errAnswer = errors.New("the answer is another call's, or has another size")
