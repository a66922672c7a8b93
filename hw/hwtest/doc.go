// Package hwtest is the contract of package hw as a test suite: [TestProvider]
// has a case for every sentence of hw's documentation, and a provider passes all
// of them.
//
// The suite is itself tested over providers that break the contract on purpose
// (package hw/fault, over hw/loop and hw/sim). The tests of package hw/fault's faults
// are here too, since they use the suite's books.
package hwtest
