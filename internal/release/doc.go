// Package release has atomic stores that order what comes before them, and nothing
// else.
//
// A goroutine that loads the stored value sees all that the storing goroutine did
// before the store. That is what a ring needs to publish a value, or a consumer to
// give a place back. A Store of sync/atomic does more: no later load of the storing
// goroutine comes before it. On amd64 that takes a locked instruction, which costs as
// much as 150 others.
//
// So whoever stores by this package and then looks at what another party says ("does
// somebody sleep?", "is somebody stalled?") may look before the other party can see
// the store. If the other party does the same, both miss each other, and a wake-up is
// lost. These are the callers. For each that looks afterwards the list names the
// locked instruction between, or says how the other party knows that a store is on
// its way:
//
//   - ring's Publish and PublishAll: the claim, a locked addition, comes before it. A
//     consumer that is about to sleep waits for all that is claimed (delivery's
//     awaitClaimed).
//   - delivery's turn, when a Dequeue leaves, or a Wait that has found its event at once: no
//     goroutine sleeps until these leave.
//   - ep's queue.retired: nobody waits for it, and a later store publishes the event by
//     which a program learns of it.
//   - ep's slot.seq, when the token's holder clears it: nobody looks at anything for it. The
//     next poster that publishes the slot has seen a later value of retired.
//   - loop's receive tail: the swap by which the poster releases its endpoint's token
//     comes between the store and the look at the pipe (hw.Runner).
//   - iwarp's placer, when it has touched memory: a goroutine that waits for the access looks
//     until the count has changed. The next access begins by a locked addition.
//   - iwarp's queues, when they give slots back: nobody waits for a slot, and a later store
//     publishes the event by which a program learns of it.
//   - delivery's laneCount: the send into the channel, which locks it, comes between the
//     store of what has begun and the look whether the queue is closed. A closer waits for
//     the counts of the sends that have begun.
//   - freelist.List.Give: a swap follows, which makes the number the first free one.
//   - stream's counters: the last store for a message, and for the completion of a send, is
//     a locked one, after which the completer looks whether a call waits. If the completer
//     has just woken a Read, that store is a plain one: the send into the channel, which
//     locks it, came between. A poster looks at nothing after its stores, since they only
//     make less due. A Read that finds no credit for its report stores once more, locked, and
//     looks again.
//   - stream's announcement that a Read waits: the mutex that the Read locks then comes
//     between.
//   - delivery's batcher, which counts what is released: the unlock of its mutex follows.
//   - ep's Outbox, whose calls say that they are under way: a call of another goroutine that
//     misses that goes on as if there were no look, and the look is for mistakes alone.
//   - memory.Ownership, when a buffer leaves the pool: nobody looks at anything for it.
//
// # Why a plain store will do on amd64
//
// The processor makes the stores of one core visible in their order, and no store
// before an earlier load. The compiler does not move memory accesses across a call
// that is not inlined, since the callee may access the same memory; so the stores are
// functions of their own. Package sync/atomic has no such store, and the memory model
// of the language does not promise it. Therefore a test looks at the machine code. On
// other processors, and under the race detector, which must see the store, these
// functions call sync/atomic's Store; on arm64 that is one instruction anyway.
//
// [Relaxed] and [Count] order nothing, and are inlined. With them ep counts what its queues
// move, and keeps the cookies of posts, both for snapshots.
package release
