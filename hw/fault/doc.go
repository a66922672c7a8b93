// Package fault wraps any provider and makes the nth operation, or one in so
// many by chance from a seed, fail, come late or lose its connection. Some of its
// faults break the contract itself, for the tests of the tests.
package fault
