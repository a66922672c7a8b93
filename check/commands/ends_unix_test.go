//go:build unix

package commands

import (
	"bufio"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// servers are the command lines of the examples that run until they are told to end.
var servers = []string{
	"blockstore --provider iwarp:127.0.0.1 --listen 127.0.0.1:0 --store FILE",
	"dattest -T S -D iwarp:127.0.0.1 -n 0",
	"doctor --serve --port 0",
	"kv --listen 127.0.0.1:0",
	"nvmeof serve --provider iwarp:127.0.0.1 --listen 127.0.0.1:0 --disk mem:1M",
	"objects --listen 127.0.0.1:0 --dir FILE",
}

func TestASignalIsHowAServerEnds(t *testing.T) {
	if !*runAll {
		return
	}
	p := &programs{dir: t.TempDir()}
	for _, line := range servers {
		for _, signal := range []os.Signal{os.Interrupt, syscall.SIGTERM} {
			args := strings.Fields(strings.ReplaceAll(line, "FILE", filepath.Join(t.TempDir(), "file")))
			cmd := exec.Command(p.build(t, ".", "./examples/"+args[0]), args[1:]...)
			cmd.Dir = t.TempDir()
			out, err := cmd.StdoutPipe()
			require.NoError(t, err)
			cmd.Stderr = cmd.Stdout
			require.NoError(t, cmd.Start())
			said := bufio.NewScanner(out)
			require.True(t, said.Scan(), "%s says nothing", line)
			require.NoError(t, cmd.Process.Signal(signal))
			first := said.Text()
			for said.Scan() {
			}
			assert.NoError(t, cmd.Wait(), "%s, which said %q, got %v", line, first, signal)
		}
	}
}

// typos are command lines that make no sense, and a part of what the program says of each.
var typos = map[string]string{
	"blockstore --nosuch":                 "--nosuch",
	"blockstore surplus":                  "surplus",
	"blockstore --listen :1 --connect :2": "--listen",
	"bench --nosuch":                      "--nosuch",
	"bench surplus":                       "surplus",
	"bench storage --provider loop":       "loop",
	"dattest -nosuch":                     "-nosuch",
	"dattest surplus":                     "client or server",
	"doctor --nosuch":                     "--nosuch",
	"doctor --port x":                     "--port",
	"kv -nosuch":                          "-nosuch",
	"kv":                                  "--addr HOST:PORT",
	"kv put k v":                          "--addr HOST:PORT",
	"kv --addr 127.0.0.1:1 delete k":      "get KEY",
	"kv --listen 127.0.0.1:0 get k":       "get KEY",
	"nvmeof":                              "serve",
	"nvmeof --nosuch":                     "--nosuch",
	"nvmeof serve":                        "--disk",
	"objects -nosuch":                     "-nosuch",
	"objects":                             "--addr HOST:PORT",
	"objects list":                        "--addr HOST:PORT",
	"objects --addr 127.0.0.1:1 delete k": "get NAME FILE",
	"objects --addr 127.0.0.1:1 get k f 1 much": "numbers of bytes",
	"rdmaping":                             "<test>",
	"rdmaping nosuch":                      "nosuch",
	"rdmaping pingpong --nosuch":           "--nosuch",
	"rping":                                "--server or --client",
	"rping -s -S 0":                        "bytes",
	"rping -c":                             "-a",
	"volume --nosuch":                      "--nosuch",
	"volume surplus":                       "surplus",
	"volume/bench -nosuch":                 "-nosuch",
	"blockstore --dir=":                    "--dir is empty",
	"blockstore --depth 1 --depth 2":       "--depth is given twice",
	"blockstore --listen :1 --store x":     "loop is memory of one process",
	"blockstore --provider nosuch --dir .": "nosuch",
	"dattest -D=":                          "it is empty",
	"dattest -D loop --provider loop":      "it is given twice",
	"dattest -D nosuch":                    "nosuch",
	"doctor --port 1 --port 2":             "--port is given twice",
	"kv --addr= get k":                     "it is empty",
	"kv --addr :1 --addr :2 get k":         "it is given twice",
	"kv --provider loop --listen :1":       "loop is memory of one process",
	"kv --provider nosuch --listen :1":     "nosuch",
	"nvmeof serve --disk=":                 "--disk is empty",
	"nvmeof serve --disk mem:1M --block 512 --block 4096": "--block is given twice",
	"nvmeof discover 127.0.0.1:1 --provider loop":         "loop is memory of one process",
	"nvmeof discover 127.0.0.1:1 --provider nosuch":       "nosuch",
	"objects --dir= --listen :1":                          "it is empty",
	"objects --addr :1 --addr :2 list":                    "it is given twice",
	"objects --provider loop --listen :1":                 "loop is memory of one process",
	"objects --provider nosuch --listen :1":               "nosuch",
	"rdmaping pingpong --provider=":                       "--provider is empty",
	"rdmaping pingpong -p 1 --port 2":                     "--port is given twice",
	"rdmaping pingpong --provider nosuch":                 "nosuch",
	"rping -s --addr=":                                    "--addr is empty",
	"rping -s -p 1 -p 2":                                  "--port is given twice",
	"rping -s --provider nosuch":                          "nosuch",
	"volume status 127.0.0.1:1 --token=":                  "--token is empty",
	"volume status 127.0.0.1:1 --token a --token b":       "--token is given twice",
	"volume status 127.0.0.1:1 --provider loop":           "loop is memory of one process",
	"volume status 127.0.0.1:1 --provider nosuch":         "nosuch",
	"volume/bench --rows=":                                "it is empty",
	"volume/bench --turns 1 --turns 2":                    "it is given twice",
	"bench --repeats 1 --repeats 2":                       "--repeats twice",
	"dattest -T S":                                        "loop is memory of one process",
	"dattest -T P -s 127.0.0.1":                           "loop is memory of one process",
	"rping -s --provider loop":                            "loop is memory of one process",
	"rdmaping pingpong --provider loop":                   "loop is memory of one process",
	"volume/bench surplus":                                "surplus",
}

// noLine is the program that has no command line.
const noLine = "quickstart"

// place is where a program of the typos is: the directory of its module from the root, and its package there.
func place(name string) (dir, pkg string) {
	switch module, rest, _ := strings.Cut(name, "/"); {
	case name == "bench":
		return ".", "./bench"
	case module == "volume":
		return "examples/volume", "./" + rest
	}
	return ".", "./examples/" + name
}

func TestACommandLineThatMakesNoSenseHasAStatusOfItsOwn(t *testing.T) {
	if !*runAll {
		return
	}
	p := &programs{dir: t.TempDir()}
	for line, want := range typos {
		args := strings.Fields(line)
		dir, pkg := place(args[0])
		cmd := exec.Command(p.build(t, dir, pkg), args[1:]...)
		cmd.Dir = t.TempDir()
		var said strings.Builder
		cmd.Stderr = &said
		_ = cmd.Run()
		assert.Equal(t, 2, cmd.ProcessState.ExitCode(), "%s: %s", line, said.String())
		assert.Contains(t, said.String(), want, line)
	}
}

func TestEachProgramHasACommandLineThatMakesNoSense(t *testing.T) {
	mains, err := filepath.Glob(filepath.Join(root, "examples", "*", "main.go"))
	require.NoError(t, err)
	more, err := filepath.Glob(filepath.Join(root, "examples", "*", "*", "main.go"))
	require.NoError(t, err)
	names := []string{"bench"}
	for _, file := range append(mains, more...) {
		name, err := filepath.Rel(filepath.Join(root, "examples"), filepath.Dir(file))
		require.NoError(t, err)
		names = append(names, filepath.ToSlash(name))
	}
	for _, name := range names {
		tried := name == noLine
		for line := range typos {
			tried = tried || strings.HasPrefix(line+" ", name+" ")
		}
		assert.True(t, tried, "no line of %s", name)
	}
}
