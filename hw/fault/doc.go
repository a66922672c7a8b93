// Package fault wraps any provider and injects faults: the nth operation, or one in
// so many picked by a seed, fails, completes late or loses its connection. Some of
// its faults break the contract of package hw itself, so that tests can prove that a
// checker notices.
package fault
