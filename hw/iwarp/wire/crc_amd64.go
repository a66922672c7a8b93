//go:build !race

package wire

import "golang.org/x/sys/cpu"

// canFold is set on processors that multiply polynomials in vectors of 64 bytes.
var canFold = cpu.X86.HasAVX512F && cpu.X86.HasAVX512VPCLMULQDQ && cpu.X86.HasSSE42

// canWord is set on processors with instructions that compute CRC-32Cs.
var canWord = cpu.X86.HasSSE42

// wordCRC adds the n bytes at p to the state of a CRC-32C, eight at a time. For few bytes
// it takes less time than package crc32, which looks at the table, the processor and the
// bytes' alignment first.
//
//go:noescape
func wordCRC(state uint32, p *byte, n int) uint32

// foldCRC adds the n bytes at p, a multiple of foldBlock that is at least foldLeast, to the
// state of a CRC-32C, which is the complement of the sum. It keeps four vectors of 64 bytes
// that stand for all before them: for each further 256 bytes it multiplies the vectors by what
// x to the power of 2048 leaves modulo the polynomial, and adds the bytes. Then it does the
// same with one vector, for each further 64 bytes.
//
//go:noescape
func foldCRC(state uint32, p *byte, n int) uint32

// copyFoldCRC is foldCRC, which also copies the bytes: it reads each once, so the CRC is
// that of the copy whoever writes to the bytes meanwhile.
//
//go:noescape
func copyFoldCRC(state uint32, to, from *byte, n int) uint32
