//go:build !unix

package main

import "time"

// processorTime is not known here.
func processorTime() time.Duration { return 0 }

// limitFiles has nothing to bound.
func limitFiles(uint64) {}
