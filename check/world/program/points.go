package program

import "godat/internal/yield"

// SeedPoints says where the library's goroutines let others run inside its protocols, in builds with points:
// those for wasip1 and those with the race detector.
func SeedPoints(seed uint64) { yield.Seed(seed) }
