// Package sim is a provider of simulated devices whose completions must be polled,
// unlike those of a provider that delivers completions to sinks. A post only stores
// requests; an engine executes them later, and completions and flushes come late. Every
// choice follows from a seed.
//
// The devices check their users: [Provider.Violations] lists the breaches of the
// contract that they saw.
package sim
