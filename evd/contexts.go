package evd

import (
	"fmt"
	"log/slog"
	"sync/atomic"

	"godat/hw"
	"godat/internal/freelist"
)

// Contexts keeps a value of type T for each outstanding operation, under the
// operation's cookie. Put and Take lock nothing, use no map and allocate nothing.
// Any goroutine may call them.
//
// A cookie holds the number of a place in the table and how often the place was
// used, so a cookie that was taken already, or never given, finds nothing. Its
// highest bit is clear.
type Contexts[T any] struct {
	number uint64
	slots  []contextSlot[T]
	free   freelist.List
}

type contextSlot[T any] struct {
	uses atomic.Uint32 // odd while a value is in it
	val  T
}

// NewContexts makes a table for n values at a time: as many as operations may be
// outstanding on the endpoints that it serves. It panics unless n is within 1 and
// [MaxQLen].
func NewContexts[T any](n int) *Contexts[T] {
	if n < 1 || n > MaxQLen {
		panic(hw.Errorf("evd.NewContexts", hw.InvalidParameter, hw.Arg1, "%d contexts; there may be 1 to %d", n, MaxQLen).Error())
	}
	c := &Contexts[T]{number: tables.Add(1), slots: make([]contextSlot[T], n)}
	c.free.Init(n)
	return c
}

// Put keeps v and returns the cookie to post with; ok is false when the table is
// full, or nil. If the post is refused, the poster calls Take to free the place.
func (c *Contexts[T]) Put(v T) (cookie uint64, ok bool) {
	if c == nil {
		return 0, false
	}
	i, ok := c.free.Take()
	if !ok {
		return 0, false
	}
	s := &c.slots[i]
	s.val = v
	return uint64(s.uses.Add(1)&usesMask)<<32 | uint64(i), true
}

// usesMask keeps the highest bit of a cookie clear.
const usesMask = 1<<31 - 1

// Take returns the value that was kept under an event's cookie, and frees its
// place; ok is false when there is none.
func (c *Contexts[T]) Take(cookie uint64) (v T, ok bool) {
	i := uint32(cookie)
	if c == nil || uint64(i) >= uint64(len(c.slots)) || cookie>>32&1 == 0 {
		return v, false
	}
	s := &c.slots[i]
	uses := s.uses.Load()
	if uint64(uses&usesMask) != cookie>>32 || !s.uses.CompareAndSwap(uses, uses+1) {
		return v, false
	}
	var none T
	v, s.val = s.val, none
	c.free.Give(i)
	return v, true
}

// String names the table. It may be called at any time.
func (c *Contexts[T]) String() string {
	if c == nil {
		return "Contexts(nil)"
	}
	return fmt.Sprintf("Contexts(%d, %d places)", c.number, len(c.slots))
}

// LogValue is String, for log/slog.
func (c *Contexts[T]) LogValue() slog.Value { return slog.StringValue(c.String()) }
