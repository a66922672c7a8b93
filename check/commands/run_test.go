package commands

import (
	"flag"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
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
}
