package host

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func load(t *testing.T, program string) *Program {
	t.Helper()
	name := filepath.Join(t.TempDir(), program)
	build := exec.Command("go", "build", "-o", name, "./testdata/"+program)
	build.Env = append(os.Environ(), "GOOS=wasip1", "GOARCH=wasm", "GOFLAGS=")
	out, err := build.CombinedOutput()
	require.NoError(t, err, "%s", out)
	code, err := os.ReadFile(name)
	require.NoError(t, err)
	p, err := Load(t.Context(), code, t.TempDir())
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, p.Close(context.Background())) })
	return p
}

var hour = Limits{Time: time.Hour, Spins: 1 << 16}

func TestAProgramThatSpinsOrDoesNotEndIsEnded(t *testing.T) {
	assert.Contains(t, load(t, "spins").Run(t.Context(), Run{Seed: 1, Limits: hour}).Err, "the program spins")
	r := load(t, "waits").Run(t.Context(), Run{Seed: 1, Limits: hour})
	assert.Contains(t, r.Err, "has not ended in 1h0m0s")
	assert.InDelta(t, 60, r.Sleeps, 2)
}

func TestTheSameSeedIsTheSameRun(t *testing.T) {
	p := load(t, "repeats")
	r := p.Run(t.Context(), Run{Seed: 1, Limits: hour, Args: []string{"x"}})
	require.Empty(t, r.Err, r.Output)
	assert.Greater(t, r.Time, 500*time.Millisecond)
	for range 5 {
		assert.Equal(t, r, p.Run(t.Context(), Run{Seed: 1, Limits: hour, Args: []string{"x"}}))
	}
	assert.NotEqual(t, r.Output, p.Run(t.Context(), Run{Seed: 2, Limits: hour, Args: []string{"x"}}).Output)
	assert.Contains(t, p.Run(t.Context(), Run{Seed: 1, Limits: hour, Args: []string{"x", "fail"}}).Err, "exit_code(3)")
}
