// Package hwtest is the contract of package hw as a test suite: [TestProvider]
// has cases for hw's documentation. A provider passes all but the gaps that its [Config] declares,
// and the suite fails when a declared gap is not there.
//
// The suite's helpers do not call Helper: the report of a failed assertion has the trace of
// its callers, and Helper would cost a tenth of the suite's time.
//
// The suite is itself tested over providers that break the contract on purpose
// (package hw/fault, over hw/loop and hw/sim). The tests of package hw/fault's faults
// are here too, since they use the suite's books.
package hwtest
