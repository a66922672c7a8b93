//go:build !amd64 || race

package wire

// canFold and canWord say that package crc32 does all: no such code is for this
// processor, and the race detector sees no access of code that is not Go's.
const (
	canFold = false
	canWord = false
)

func foldCRC(uint32, *byte, int) uint32 { panic("wire: no vectors") }

func copyFoldCRC(uint32, *byte, *byte, int) uint32 { panic("wire: no vectors") }

func wordCRC(uint32, *byte, int) uint32 { panic("wire: no such instructions") }
