// Package hwtest holds what the contract of package hw is tested with.
//
//   - [TestProvider] is the contract as a test suite: every sentence of hw's
//     documentation is a case of its own, and a provider passes all of them.
//   - [Sim] is a simulated device whose completions must be polled: a second
//     shape beside providers that complete by themselves. Nothing happens inside
//     a post, completions and flushes come late, and a peer can be lost.
//   - [Fault] wraps any provider and makes the nth operation fail, come late or
//     lose its connection, from a seed.
//
// Programs and the tests of other packages may use all three.
package hwtest
