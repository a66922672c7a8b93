package usage

import (
	"flag"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestAWordHasTwoDashesAndALetterOneAndEitherIsTakenWithBoth(t *testing.T) {
	for _, args := range []string{"-D x -listen y -count 3", "--D x --listen y --count 3", "--D=x -listen=y --count=3"} {
		var out strings.Builder
		f := flag.NewFlagSet("it", flag.ContinueOnError)
		f.SetOutput(&out)
		device := f.String("D", "loop", "the `device`")
		listen := f.String("listen", "", "serve on this `address`")
		count := f.Int("count", 0, "how many")
		f.Bool("quiet", false, "say nothing")
		Flags(f, "it, and how")
		require.NoError(t, f.Parse(strings.Fields(args)))
		assert.Equal(t, []any{"x", "y", 3}, []any{*device, *listen, *count}, args)
		require.ErrorIs(t, f.Parse([]string{"-h"}), flag.ErrHelp)
		assert.Equal(t, "it, and how\n  -D device\n    \tthe device (default loop)\n  --count int\n    \thow many\n"+
			"  --listen address\n    \tserve on this address\n  --quiet\n    \tsay nothing\n", out.String())
	}
}
