//go:build race

package ledger

// underRace says that the race detector is on; under it everything takes longer.
const underRace = true
