// Package conformance is DAT's test suite for providers. It uses the library's public
// API alone: it tests what a program sees of a provider.
//
// The cases have the names that the project's reading of the specification gives
// them: those of the C library's own tests (dapltest's FFT, limit and transaction
// tests, dtest, dtestx, dtestcm, dtestsrq) and further ones that the specification
// demands. Cases that walk a table (operations and states, flags, privileges) have a
// subtest per cell, and the tables are typed from the specification.
//
// testdata/table.txt says for every provider and case either that the case passes, or
// which capability the provider lacks. [Run] requires exactly that. It does not take
// the lack of a capability on trust: it makes a call that needs the capability, and
// the provider must refuse the call with an error that says so.
//
// Where a provider differs in another way, a [Gap] says so, and the cases that meet the
// gap require what it says.
//
// The suite's helpers do not call Helper: the report of a failed assertion has the trace
// of its callers, and Helper would cost a tenth of the suite's time.
//
// After each case the suite closes everything in reverse order, and nothing may be
// left: no object (the adapters close gracefully), no registration or mapping, no
// goroutine, no descriptor.
package conformance
