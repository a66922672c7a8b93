// Package hwtest is the contract of package hw as a test suite: [TestProvider]
// has a case for every sentence of hw's documentation, and a provider passes all
// of them.
//
// The suite is itself tested over providers that break the contract on purpose
// (package hw/fault, over hw/loop and hw/sim). The tests of what faults do are
// here too, for the suite's books judge it.
package hwtest
