//go:build amd64 || arm64

#include "textflag.h"

#ifdef GOARCH_amd64
TEXT ·Goroutine(SB), NOSPLIT, $0-8
	MOVQ (TLS), AX
	MOVQ AX, ret+0(FP)
	RET
#endif

#ifdef GOARCH_arm64
TEXT ·Goroutine(SB), NOSPLIT, $0-8
	MOVD g, R0
	MOVD R0, ret+0(FP)
	RET
#endif
