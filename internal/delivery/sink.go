package delivery

import (
	"unsafe"

	"godat/hw"
	"godat/hw/event"
)

// A Sink is a way of delivery behind a queue that has neither a ring nor a channel. Each way is
// a file, knows its Queue and no other way, and has a [Way] by which package evd names it.
//
// Any number of goroutines may call the methods at once. None blocks, allocates or calls user
// code, but for a function that the program gave for that. The events of a queue have places,
// unless it is placeless: the Sink counts an event that was taken by the queue's Done, and a
// place without an event by its Unuse: so a close knows whether an event is still to come.
type Sink interface {
	// Put takes events, each of which has a place. The array behind evs is the caller's: Put
	// copies what it keeps. Of each event it asks the Queue's accepts, since a Conn has a filter.
	Put(evs []event.Event)
	// Flush says that the producer has nothing more for the moment. With all, everything is to
	// go out: what is silent and what is held back, because a poster found no room or the
	// program asks; the listed events, if some have come; and the end, if the queue is closed
	// and nothing more can come: then all places are idle. The end is the dispatcher's last event,
	// or what the way has in its place, such as the close of a channel.
	Flush(all bool)
	// Free gives back n places that no event will use.
	Free(n int)
	// Counts returns how many events Put took so far, and how many listed events it has now
	// that nobody has taken.
	Counts() (came uint64, listed int)
}

// grower is a Sink whose memory Resize can grow. Grow comes before the new limit.
type grower interface{ Grow(places int) }

// quick is a Sink that takes one success, with its Flush, by the fields in registers: to build an
// event and copy it costs more than such a Sink itself.
type quick interface {
	Success(source any, cookie uint64, op hw.Op, length uint32)
}

// caller is a Sink that calls the program.
type caller interface {
	inside() bool          // the calling goroutine is in such a call
	stop() bool            // waits until no call is under way, and reports whether none is
	onExit(f func())       // f is called when a call has not returned, though its goroutine has ended
	began() (calls uint64) // twice how many calls began, less one while one is under way
}

// A Way makes the queue of a dispatcher deliver. Package evd has a table of them.
type Way struct {
	Name string
	// Grows is whether Resize can make a queue longer than its memory was at the beginning.
	Grows bool
	// Placeless is whether events take no places, so that a dispatcher has no length.
	Placeless bool
	// Helps is whether consumers do the work of a device that wants their help (hw.Progresser):
	// those that poll, or may sleep behind their last look.
	Helps bool
	// Begin completes a queue that has its dispatcher and its limit. It sets the Queue's lasts if
	// the Sink delivers what comes behind a close: a dispatcher is closed then while posts are under way.
	Begin func(q *Queue, cfg *Config)
}

// String is the way's name.
func (w *Way) String() string { return w.Name }

// form is what a queue has: of the usual two ways it knows the types, so that a completion
// costs no call of a method that the compiler doesn't know.
type form uint8

const (
	toRing form = iota
	toChannel
	toSink
)

// SinkTo makes q deliver by a Sink.
func (q *Queue) SinkTo(s Sink) {
	q.form, q.sink = toSink, s
	if s, ok := s.(quick); ok {
		q.success = s.Success
	}
}

// Sink returns where q delivers; nil if that is a ring or a channel.
func (q *Queue) Sink() Sink { return q.sink }

// Done gives back the places of n events that were taken.
func (q *Queue) Done(n int) { q.giveBack(uint64(n)) }

// Unuse gives back n places that no event will use, of a queue whose events are counted when
// they have been taken.
func (q *Queue) Unuse(n int) {
	q.places.unused.Add(uint64(n))
	q.giveBack(uint64(n))
}

// onStack hides from the compiler that a Sink sees evs. The compiler can't know that Put keeps
// none of the array, and would have each completer allocate it.
func onStack(evs []event.Event) []event.Event {
	first := uintptr(unsafe.Pointer(unsafe.SliceData(evs)))
	return unsafe.Slice(*(**event.Event)(unsafe.Pointer(&first)), len(evs))
}
