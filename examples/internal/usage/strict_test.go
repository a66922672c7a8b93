package usage

import (
	"flag"
	"io"
	"testing"

	"github.com/alecthomas/kong"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// lines are command lines, and what is said of each, or nothing if it is taken.
var lines = []struct {
	args []string
	says string
}{
	{nil, ""},
	{[]string{"--name", "x", "-v", "--many=a,b", "--many", "c", "--pairs", "k=v", "--pairs=l=", "--id=1", "--count=2"}, ""},
	{[]string{"-vn", "x"}, ""},
	{[]string{"-vnx", "to", "8"}, ""},
	{[]string{"--name=a", "--name=a"}, "--name is given twice"},
	{[]string{"-n", "a", "--alias", "b"}, "--name is given twice"},
	{[]string{"-v", "-v"}, "--verbose is given twice"},
	{[]string{"--name="}, "--name is empty: leave it out"},
	{[]string{"--name", ""}, "--name is empty: leave it out"},
	{[]string{"-vn", ""}, "--name is empty: leave it out"},
	{[]string{"--alias="}, "--name is empty: leave it out"},
	{[]string{"--many=a", "--many="}, "--many is empty: leave it out"},
	{[]string{"--pairs", ""}, "--pairs is empty: leave it out"},
	{[]string{"--count="}, `--count: expected a valid 64 bit int but got ""`},
	{[]string{""}, "host is empty: leave it out"},
	{[]string{"to", "9"}, "number 9; it may be 1 to 8"},
	{[]string{"--id=0"}, "--id 0; it may be 1 to 8"},
	{[]string{"--id=9"}, "--id 9; it may be 1 to 8"},
	{[]string{"--count=1"}, "--count 1; it may be 2 or more"},
	{[]string{"--count=-1"}, "--count -1; it may be 2 or more"},
}

func TestWhatKongWouldTakeForSomethingElseIsRefused(t *testing.T) {
	for _, line := range lines {
		var o struct {
			Name    string `short:"n" aliases:"alias"`
			Verbose bool   `short:"v"`
			Many    []string
			Pairs   map[string]string
			ID      uint64 `name:"id" least:"1" most:"8"`
			Count   int    `least:"2"`
			Host    string `arg:"" optional:""`
			Number  uint64 `arg:"" optional:"" least:"1" most:"8"`
		}
		parser, err := kong.New(&o, Strict())
		require.NoError(t, err)
		_, err = parser.Parse(line.args)
		if line.says == "" {
			require.NoError(t, err, line.args)
		} else {
			require.EqualError(t, err, line.says, line.args)
		}
	}
}

func TestAFlagIsGivenOnceAndNotEmpty(t *testing.T) {
	for _, line := range []struct {
		args []string
		says string
	}{
		{[]string{"-D", "x", "--quiet", "--area", "y"}, ""},
		{[]string{"-D", "x", "-D", "x"}, `invalid value "x" for flag -D: it is given twice`},
		{[]string{"-D", "x", "--device", "y"}, `invalid value "y" for flag -device: it is given twice`},
		{[]string{"--quiet", "--quiet"}, `invalid boolean flag quiet: it is given twice`},
		{[]string{"--area=y", "--area=y"}, `invalid value "y" for flag -area: it is given twice`},
		{[]string{"-D", ""}, `invalid value "" for flag -D: it is empty: leave it out`},
		{[]string{"--area="}, `invalid value "" for flag -area: it is empty: leave it out`},
	} {
		f := flag.NewFlagSet("it", flag.ContinueOnError)
		f.SetOutput(io.Discard)
		var device string
		f.StringVar(&device, "D", "loop", "the device")
		f.StringVar(&device, "device", "loop", "the same")
		f.Bool("quiet", false, "say nothing")
		f.Func("area", "where", func(string) error { return nil })
		Flags(f, "it")
		if err := f.Parse(line.args); line.says == "" {
			assert.NoError(t, err, line.args)
		} else {
			assert.EqualError(t, err, line.says, line.args)
		}
	}
}
