// Package sim is a simulated device whose completions must be polled: the second
// shape that a provider can have, beside those that complete by themselves.
// Nothing happens inside a post, completions and flushes come late, a peer can be
// lost, and every choice follows from a seed.
//
// The devices watch whoever drives them: [Provider.Violations] lists the breaches
// of the contract that they saw.
package sim
