package delivery

// Kind is how a queue delivers.
type Kind uint8

// The kinds of queues of dispatchers. A route's is a KindChannel. [Queue.Release] relies on
// the order: kinds with a ring stand before KindChannel, the others behind it. A further kind
// needs its answer wherever this package asks for the kind, and a mode of evd (its name in
// streams.go, dispatcher.go, and the consumer's method in consume.go), with its name in
// package runtime. What only wakes a consumer of a ring needs no kind: see evd.CNO.
const (
	KindRing     Kind = iota // a ring, and a consumer that dequeues or waits
	KindCallback             // a ring, and a task that calls back
	KindChannel              // a channel of events
	KindBatch                // a channel of batches
	kindOneShot              // the channel of a one-shot request

	kindOvercommitted // a ring that may be full
	kindSink          // a filter that refuses every event; of a dispatcher, with a channel for listed events
)

// String names the kind.
func (k Kind) String() string {
	return [...]string{"ring", "callback", "channel", "batch", "one-shot", "over-committed", "sink"}[k]
}
