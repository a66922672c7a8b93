// Package observer lets the judge of check/peers look into a server: it counts what the
// process holds. The judge builds it into the servers by an overlay, so no server imports it.
package observer

// Env is the environment variable whose presence starts the observer. The process has the judge's
// questions as descriptor 3 then, and writes its answers to descriptor 4.
const Env = "GODAT_OBSERVED"

// Usage is what a process holds.
type Usage struct {
	Goroutines  int
	Descriptors int
	Resident    int // anonymous memory, in KiB
}

// The judge's questions.
const (
	Count = 'c' // answered by a Usage, as a line of JSON
	Dump  = 'd' // the stacks of all goroutines go to standard error
)
