package commands

import (
	"bufio"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var runAll = flag.Bool("commands.run", false, "run the commands that need nothing but this machine, and build the programs of other modules")

var exe = map[bool]string{true: ".exe"}[runtime.GOOS == "windows"]

// ends are commands that end by themselves, and part of what they print.
var ends = map[string]string{
	"go run ./examples/quickstart":        `"hello"`,
	"go run ./examples/doctor":            "",
	"go run ./examples/blockstore":        "",
	"go run ./examples/rping --help":      "--server",
	"go run ./examples/dattest -h":        "-T TEST",
	"go run ./examples/rdmaping --help":   "<test>",
	"go run ./examples/volume --help":     "serve",
	"go doc godat/runtime":                "func Open",
	"go doc godat/examples/nvmeof/target": "Target",
	"go doc godat/hw/iwarp Config":        "Params",
	"make help":                           "help",
	"go test ./examples/nvmeof/nvme":      "ok",
	"go doc godat/ep Endpoint.PostSend":   "PostSend",
}

// conversations are servers of README, each with the commands of its clients and what the last
// one prints, or writes to the file.
var conversations = []struct {
	server  string
	clients []string
	printed string
}{
	{
		"go run ./examples/kv -listen 127.0.0.1:7000",
		[]string{"go run ./examples/kv -addr 127.0.0.1:7000 put k v", "go run ./examples/kv -addr 127.0.0.1:7000 get k"},
		"v",
	},
	{
		"go run ./examples/objects -listen 127.0.0.1:7001",
		[]string{"go run ./examples/objects -addr 127.0.0.1:7001 put NAME FILE", "go run ./examples/objects -addr 127.0.0.1:7001 get NAME FILE"},
		"",
	},
}

// prints reports whether a page prints the command.
func prints(all []command, text string) bool {
	for _, c := range all {
		if strings.Join(c.args, " ") == text {
			return true
		}
	}
	return false
}

func TestCommandsThatNeedNothingRun(t *testing.T) {
	if !*runAll {
		return
	}
	all := find(t)
	for text, want := range ends {
		assert.True(t, prints(all, text), "no page prints %s", text)
		args := strings.Fields(text)
		out, err := run(root, args[0], args[1:]...)
		assert.NoError(t, err, "%s: %s", text, out)
		assert.Contains(t, out, want, text)
	}
	p := &programs{dir: t.TempDir()}
	for _, c := range conversations {
		for _, text := range append([]string{c.server}, c.clients...) {
			assert.True(t, prints(all, text), "no page prints %s", text)
		}
		p.converse(t, c.server, c.clients, c.printed)
	}
}

// converse runs a server until its clients have ended.
func (p *programs) converse(t *testing.T, server string, clients []string, printed string) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	require.NoError(t, os.WriteFile(file, []byte("what was put"), 0o600))
	start := func(text string) *exec.Cmd {
		args := strings.Fields(strings.NewReplacer("NAME", "a/name", "FILE", file).Replace(text))
		cmd := exec.Command(p.build(t, ".", args[2]), args[3:]...)
		cmd.Dir, cmd.Stderr = dir, os.Stderr
		return cmd
	}
	s := start(server)
	out, err := s.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, s.Start())
	defer func() {
		assert.NoError(t, s.Process.Signal(os.Interrupt))
		assert.NoError(t, s.Wait(), server)
	}()
	require.True(t, bufio.NewScanner(out).Scan(), "%s says nothing", server)
	for i, text := range clients {
		if i == len(clients)-1 && strings.Contains(text, "FILE") {
			require.NoError(t, os.Remove(file)) // so that get makes it
		}
		said, err := start(text).Output()
		require.NoError(t, err, text)
		if i == len(clients)-1 && printed != "" {
			assert.Equal(t, printed, strings.TrimSpace(string(said)), text)
		}
	}
	if strings.Contains(strings.Join(clients, " "), "FILE") {
		got, err := os.ReadFile(file)
		require.NoError(t, err)
		assert.Equal(t, "what was put", string(got))
	}
}
