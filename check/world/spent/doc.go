// Package spent says what a process takes of processors: what it takes of the clock depends on what else the machine does.
package spent
