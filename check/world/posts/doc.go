// Package posts is a program of the seeded world, and its judge: the library completes every post exactly once.
//
// [Posts] drives two adapters through the public API: many endpoints that post to each
// other from both sides at once, several posters per endpoint and direction, all
// operations and flags, single posts and batches, every way to get events, and every
// way in which a connection can end, most of them in full flight. Its tests run it on real
// processors, too, over providers that inject faults (fault.Provider).
//
// # The books
//
// The program keeps books of its own. All that the library sees of them is a cookie per
// post:
//
//	world ─ link ─┬─ account (an endpoint) ─┬─ lane (a direction) ─ pages (one per poster) ─ entries (posts)
//	              └─ account                └─ lane
//
// A poster writes an entry before it posts. The consumer that gets the event finds the
// entry by the cookie and settles it. The books complain unless:
//
//   - An accepted post completes exactly once; a suppressed one exactly once if
//     it fails, and never if it succeeds; a refused one never.
//   - Cookie, endpoint, operation, length and place (dispatcher, route, one-shot
//     request) are right. A message begins with the cookie of its send, which
//     shows that it arrives once and in order. The other bytes of memory are
//     checked by hw/hwtest and check/world/model.
//   - The event of a long read comes though nothing follows it but a send whose event goes
//     elsewhere.
//   - Completions of a direction come in the order of the posts, as far as that
//     order can be seen from outside: a post that returned before another began
//     precedes it. After a failure nothing succeeds.
//   - Every failure has a cause, and the status fits the cause.
//   - An attempt to connect has one outcome, a connection one end. ESTABLISHED
//     precedes the first completion and the end follows the last, where they
//     share a dispatcher.
//   - Between two connections, what an endpoint's snapshot counts is what the books have.
//   - After everything is closed, memory, mappings, goroutines and descriptors
//     are what they were before, and so is the room in every dispatcher that
//     has no callback.
//
// The world is told of each breach of these rules, by its [Kind].
package posts
