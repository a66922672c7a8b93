// Package mem registers memory with a device and checks the segments of posts
// against it.
//
// An interface adapter makes protection zones ([PZ]), and a zone makes local memory
// regions ([LMR]): memory from outside the Go heap, or the caller's own, pinned. A
// [Segment] names a part of a region for a local operation, a [RemoteSegment] names
// it for a peer. A window ([RMR]) gives a peer access to a part of a region for a
// while.
//
// # Checks and the end of a region
//
// Every post checks its segments against an immutable snapshot of each region
// (internal/memory), without a lock and without a count of uses, which would cost more than
// the check. So a program may free a region that posted work still names. [LMR.Free] first makes the
// region dead, so that no later post finds it; then the device waits until every transfer that touches the memory has stopped,
// for a chunk of a copy at most; only then does Free give the memory back. Work
// that had not begun by then fails with LOCAL_PROTECTION.
package mem
