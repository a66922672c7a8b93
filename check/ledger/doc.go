// Package ledger proves that the library completes every post exactly once.
//
// [Run] drives adapters through the public API: many endpoints that post to each
// other from both sides at once, several posters per endpoint and direction, all
// operations and flags, single and in batches, every way to get at events, and
// connections that end in every way there is, most of them in full flight. The
// provider may be one that makes things go wrong by itself (fault.Provider).
//
// # The books
//
// Beside the library it keeps its own books, of which the library knows nothing
// but cookies:
//
//	world ─ link ─┬─ account (an endpoint) ─┬─ lane (a direction) ─ pages (one per poster) ─ entries (posts)
//	              └─ account                └─ lane
//
// A poster writes an entry before it posts; whoever receives an event finds the
// entry by the cookie and settles it. What is demanded:
//
//   - An accepted post completes exactly once; a suppressed one exactly once if
//     it fails, and never if it succeeds; a refused one never.
//   - Cookie, endpoint, operation, length and place (dispatcher, route, one-shot
//     request) are right. A message begins with the cookie of its send, and so
//     arrives once and in order. What else is in memory is for hw/hwtest and
//     check/model to check.
//   - Completions of a direction come in the order of the posts, as far as that
//     can be known from outside: a post that returned before another began
//     precedes it. After a failure nothing succeeds.
//   - Nothing fails without a cause, and the status fits the cause.
//   - An attempt to connect has one outcome, a connection one end. ESTABLISHED
//     precedes the first completion and the end follows the last, where they
//     share a dispatcher.
//   - After everything was closed, memory, mappings, goroutines and descriptors
//     are what they were before, and so is the room in every dispatcher.
//
// What is found wrong is a [Complaint]. A run's choices come from its seed; how
// goroutines interleave does not.
package ledger
