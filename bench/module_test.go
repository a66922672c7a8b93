package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// moduleOf is a module whose program is made of these statements.
func moduleOf(t *testing.T, statements string) string {
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "go.mod"), []byte("module it\n"), 0o600))
	text := fmt.Sprintf("package main\n\nimport (\n\"fmt\"\n\"io\"\n\"os\"\n)\n\nvar _, _, _ = io.EOF, os.Args, fmt.Sprint()\n\nfunc main() {\n%s\n}\n", statements)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "main.go"), []byte(text), 0o600))
	return dir
}

func TestCallsAreMeasuredInTheModule(t *testing.T) {
	require.ErrorContains(t, run([]string{"rpc", "--module=nowhere"}, io.Discard), "no Go module in nowhere")
	var out bytes.Buffer
	args := []string{"--repeats=2", "--duration=1ms", "rpc", "--size=5,6", "--callers=7", "--large=0", "--only=x", "--write", "--folder=here"}
	require.NoError(t, run(append(args, "--module="+moduleOf(t, printArgs)), &out))
	assert.Equal(t, `[rpc {"Callers":7,"Duration":1000000,"Large":0,"Only":"x","Repeats":2,"Sizes":[5,6],"Write":"here"}]`+"\n", out.String())
}

const printArgs = "fmt.Println(os.Args[1:])\n"

// told writes to a channel.
type told chan string

func (w told) Write(b []byte) (int, error) {
	w <- string(b)
	return len(b), nil
}

func TestAnInterruptEndsTheModuleToo(t *testing.T) {
	this, err := os.FindProcess(os.Getpid())
	require.NoError(t, err)
	dir := moduleOf(t, printArgs+"_, _ = io.Copy(io.Discard, os.Stdin)") // which ends with this process, or at a signal
	out, ended := make(told), make(chan error, 1)
	go func() { ended <- run([]string{"rpc", "--module=" + dir}, out) }()
	assert.Contains(t, <-out, "[rpc {")
	require.NoError(t, this.Signal(os.Interrupt))
	assert.ErrorContains(t, <-ended, "signal: terminated")
}

func TestAMachineThatCannotMeasureCallsHasAStatusOfItsOwn(t *testing.T) {
	args := []string{"rpc", "--module=" + moduleOf(t, fmt.Sprintf("os.Exit(%d)", statusUnable))}
	require.ErrorIs(t, run(args, io.Discard), errUnable)
	args = []string{"rpc", "--module=" + moduleOf(t, "os.Exit(1)")}
	err := run(args, io.Discard)
	require.Error(t, err)
	require.NotErrorIs(t, err, errUnable)
}
