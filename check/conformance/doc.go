// Package conformance is DAT's test suite for providers, through the library's
// public API alone: what a program sees of a provider is what is tested.
//
// The cases carry the names that the project's reading of the specification gives
// them: those of the C library's own tests (dapltest's FFT, limit and transaction
// tests, dtest, dtestx, dtestcm, dtestsrq) and those that the specification
// demands beyond them. Cases that walk a table (operations and states, flags,
// privileges) have a subtest per cell, and the tables are typed from the
// specification.
//
// testdata/table.txt says of every provider and case that it passes, or which
// capability the provider lacks; [Run] demands that it is so, both ways. Lack of a
// capability is not taken on trust: the call is made and must be refused with an
// error that says so.
//
// Where a provider differs in another way, a [Gap] says so, and the cases that meet it
// demand what the gap says.
//
// After each case everything is closed, in reverse, and nothing may be left: no
// object (the adapters close gracefully), no registration or mapping, no
// goroutine, no descriptor.
package conformance
