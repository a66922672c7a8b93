//go:build !race

package ledger

// underRace says that the race detector is on, under which all takes longer.
const underRace = false
