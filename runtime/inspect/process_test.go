package inspect

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	dat "godat/runtime"
	"godat/runtime/inspect/internal/process"
)

func TestThePageSaysWhichProcessItIsOf(t *testing.T) {
	r := newRig(t, 1, dat.ConnConfig{})
	p := process.Now()
	host, err := os.Hostname()
	require.NoError(t, err)
	assert.Equal(t, filepath.Base(os.Args[0]), p.Program)
	assert.Equal(t, runtime.GOMAXPROCS(0), p.GOMAXPROCS)
	assert.Positive(t, p.Uptime)
	who := fmt.Sprintf("%s on %s, process %d", p.Program, host, os.Getpid())
	assert.Equal(t, who, p.String())
	text := r.get("").Body.String()
	title, _, _ := strings.Cut(text, "</title>")
	assert.Contains(t, title, who, "a browser's tab tells the programs apart")
	header, _, _ := strings.Cut(text, "</header>")
	assert.Contains(t, strings.TrimPrefix(header, title), who)
	for _, name := range []string{"built of", "started", "descriptors", "memory", "processors"} {
		assert.Contains(t, text, "<dt>"+name+"</dt>")
	}
	var said struct{ Process process.Info }
	r.askFor("?format=json", &said)
	assert.Equal(t, p.PID, said.Process.PID)
	assert.Equal(t, p.Host, said.Process.Host)
	assert.Equal(t, p.Go, said.Process.Go)
}

func TestAProcessThatSoonHasNoneLeftIsInTrouble(t *testing.T) {
	for p, want := range map[process.Info]string{
		{Program: "kv"}: "",
		{Program: "kv", Descriptors: 899, DescriptorsLimit: 1000}:  "",
		{Program: "kv", Descriptors: 900, DescriptorsLimit: 1000}:  "has 900 descriptors of 1 000 open; raise ulimit -n, or close files and connections",
		{Program: "kv", Memory: 95 << 20, MemoryLimit: 100 << 20}:  "has 95 MiB of memory of the 100 MiB that its control group may have; keep less, raise that limit, or set GOMEMLIMIT below it",
		{Program: "kv", Memory: 95 << 20, GoMemoryLimit: 96 << 20}: "", // which Go's memory may meet
	} {
		now := &seen{Process: p}
		var said []string
		for _, trouble := range troubles(now, nil) {
			assert.Equal(t, "kv", trouble.Head)
			said = append(said, trouble.Text)
		}
		assert.Equal(t, want, strings.Join(said, "; "))
	}
}

func TestWhatTheProgramWasBuiltOfIsALine(t *testing.T) {
	p := process.Info{Module: "example.com/shop/kv", Version: "v1.2.3", Commit: "0123456789abcdef+changes", Library: "v0.9.0", Go: "go1.26"}
	assert.Equal(t, "kv v1.2.3 of commit 0123456789ab with changes, godat v0.9.0, go1.26", built(&p))
}
