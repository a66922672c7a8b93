//go:build !race

#include "textflag.h"

// Each line has what carries 128 bits over a distance: the multiplier of their first 64
// bits, and that of the last 64.
DATA fold2048<>+0x00(SB)/8, $0xdcb17aa4
DATA fold2048<>+0x08(SB)/8, $0xb9e02b86
GLOBL fold2048<>(SB), RODATA|NOPTR, $16

DATA fold512<>+0x00(SB)/8, $0x740eef02
DATA fold512<>+0x08(SB)/8, $0x9e4addf8
GLOBL fold512<>(SB), RODATA|NOPTR, $16

DATA fold128<>+0x00(SB)/8, $0xf20c0dfe
DATA fold128<>+0x08(SB)/8, $0x493c7d27
GLOBL fold128<>(SB), RODATA|NOPTR, $16

// FOLD carries the lanes of acc over the distance of k, and adds in. It uses Z8 and Z9.
#define FOLD(k, acc, in) \
	VPCLMULQDQ $0x00, k, acc, Z8 \
	VPCLMULQDQ $0x11, k, acc, Z9 \
	VMOVDQA64  in, acc           \
	VPTERNLOGQ $0x96, Z8, Z9, acc

// FOLD4 carries the four vectors Z0 to Z3 over 256 bytes, and adds those in Z4 to Z7.
#define FOLD4 \
	FOLD(Z10, Z0, Z4) \
	FOLD(Z10, Z1, Z5) \
	FOLD(Z10, Z2, Z6) \
	FOLD(Z10, Z3, Z7)

// JOIN makes Z0 of the four vectors Z0 to Z3. It leaves the multipliers of FOLD over 64
// bytes in Z10.
#define JOIN \
	VBROADCASTI32X4 fold512<>(SB), Z10 \
	FOLD(Z10, Z0, Z1)                  \
	FOLD(Z10, Z0, Z2)                  \
	FOLD(Z10, Z0, Z3)

// REDUCE makes AX of the vector Z0.
#define REDUCE \
	VMOVDQU       fold128<>(SB), X10   \
	VEXTRACTI32X4 $1, Z0, X1           \
	VEXTRACTI32X4 $2, Z0, X2           \
	VEXTRACTI32X4 $3, Z0, X3           \
	VPCLMULQDQ    $0x00, X10, X0, X4   \
	VPCLMULQDQ    $0x11, X10, X0, X5   \
	VPXOR         X4, X1, X1           \
	VPXOR         X5, X1, X1           \
	VPCLMULQDQ    $0x00, X10, X1, X4   \
	VPCLMULQDQ    $0x11, X10, X1, X5   \
	VPXOR         X4, X2, X2           \
	VPXOR         X5, X2, X2           \
	VPCLMULQDQ    $0x00, X10, X2, X4   \
	VPCLMULQDQ    $0x11, X10, X2, X5   \
	VPXOR         X4, X3, X3           \
	VPXOR         X5, X3, X3           \
	VMOVQ         X3, BX               \
	VPEXTRQ       $1, X3, CX           \
	XORL          AX, AX               \
	CRC32Q        BX, AX               \
	CRC32Q        CX, AX               \
	VZEROUPPER

// func foldCRC(state uint32, p *byte, n int) uint32
TEXT ·foldCRC(SB), NOSPLIT, $0-28
	MOVL state+0(FP), AX
	MOVQ p+8(FP), SI
	MOVQ n+16(FP), CX

	VMOVD     AX, X4
	VMOVDQU64 0(SI), Z0
	VPXORQ    Z4, Z0, Z0
	VMOVDQU64 64(SI), Z1
	VMOVDQU64 128(SI), Z2
	VMOVDQU64 192(SI), Z3
	ADDQ      $256, SI
	SUBQ      $512, CX
	JLT       join

	VBROADCASTI32X4 fold2048<>(SB), Z10

loop:
	VMOVDQU64 0(SI), Z4
	VMOVDQU64 64(SI), Z5
	VMOVDQU64 128(SI), Z6
	VMOVDQU64 192(SI), Z7
	FOLD4
	ADDQ      $256, SI
	SUBQ      $256, CX
	JGE       loop

join:
	JOIN
	ADDQ $256, CX // what is left
	JZ   done

rest:
	VMOVDQU64 0(SI), Z4
	FOLD(Z10, Z0, Z4)
	ADDQ      $64, SI
	SUBQ      $64, CX
	JNZ       rest

done:
	REDUCE
	MOVL AX, ret+24(FP)
	RET

// func copyFoldCRC(state uint32, to, from *byte, n int) uint32
TEXT ·copyFoldCRC(SB), NOSPLIT, $0-36
	MOVL state+0(FP), AX
	MOVQ to+8(FP), DI
	MOVQ from+16(FP), SI
	MOVQ n+24(FP), CX

	VMOVD     AX, X4
	VMOVDQU64 0(SI), Z0
	VMOVDQU64 64(SI), Z1
	VMOVDQU64 128(SI), Z2
	VMOVDQU64 192(SI), Z3
	VMOVDQU64 Z0, 0(DI)
	VMOVDQU64 Z1, 64(DI)
	VMOVDQU64 Z2, 128(DI)
	VMOVDQU64 Z3, 192(DI)
	VPXORQ    Z4, Z0, Z0
	ADDQ      $256, SI
	ADDQ      $256, DI
	SUBQ      $512, CX
	JLT       join

	VBROADCASTI32X4 fold2048<>(SB), Z10

loop:
	VMOVDQU64 0(SI), Z4
	VMOVDQU64 64(SI), Z5
	VMOVDQU64 128(SI), Z6
	VMOVDQU64 192(SI), Z7
	VMOVDQU64 Z4, 0(DI)
	VMOVDQU64 Z5, 64(DI)
	VMOVDQU64 Z6, 128(DI)
	VMOVDQU64 Z7, 192(DI)
	FOLD4
	ADDQ      $256, SI
	ADDQ      $256, DI
	SUBQ      $256, CX
	JGE       loop

join:
	JOIN
	ADDQ $256, CX // what is left
	JZ   done

rest:
	VMOVDQU64 0(SI), Z4
	VMOVDQU64 Z4, 0(DI)
	FOLD(Z10, Z0, Z4)
	ADDQ      $64, SI
	ADDQ      $64, DI
	SUBQ      $64, CX
	JNZ       rest

done:
	REDUCE
	MOVL AX, ret+32(FP)
	RET

// func wordCRC(state uint32, p *byte, n int) uint32
TEXT ·wordCRC(SB), NOSPLIT, $0-28
	MOVL state+0(FP), AX
	MOVQ p+8(FP), SI
	MOVQ n+16(FP), CX
	SUBQ $32, CX
	JLT  words

quads:
	CRC32Q 0(SI), AX
	CRC32Q 8(SI), AX
	CRC32Q 16(SI), AX
	CRC32Q 24(SI), AX
	ADDQ   $32, SI
	SUBQ   $32, CX
	JGE    quads

words: // CX is 32 less than what is left: its low bits are those of what is left
	TESTQ  $16, CX
	JZ     eight
	CRC32Q 0(SI), AX
	CRC32Q 8(SI), AX
	ADDQ   $16, SI

eight:
	TESTQ  $8, CX
	JZ     four
	CRC32Q 0(SI), AX
	ADDQ   $8, SI

four:
	TESTQ  $4, CX
	JZ     two
	CRC32L 0(SI), AX
	ADDQ   $4, SI

two:
	TESTQ  $2, CX
	JZ     one
	CRC32W 0(SI), AX
	ADDQ   $2, SI

one:
	TESTQ  $1, CX
	JZ     done
	CRC32B 0(SI), AX

done:
	MOVL AX, ret+24(FP)
	RET
