package rpc

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestACodeHasAText(t *testing.T) {
	for code, text := range map[uint16]string{
		0: "code 0", CodeUnknown: "CodeUnknown", CodeDraining: "CodeDraining", CodeTooLong: "CodeTooLong", CodeBusy: "CodeBusy",
		CodeFailed: "CodeFailed", CodeFull: "CodeFull", codeLater: "code 7", CodeUser: "code 256", 1<<16 - 1: "code 65535",
	} {
		assert.Equal(t, text, CodeText(code))
		assert.EqualError(t, &Error{code, "text"}, "rpc: text ("+text+")")
	}
}
