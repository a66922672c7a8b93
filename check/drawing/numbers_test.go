package drawing

import (
	"fmt"
	"go/constant"
	"go/types"
	"os"
	"path"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// numbers are sentences of pages with a number that is a constant of the code. A sentence
// whose number no test holds leaves the page.
var numbers = []struct {
	page, sentence string
	pkg, name      string // of the constant
	is             int64
}{
	{"README.md", "one receive for up to 32 events", "evd", "defaultBatch", 32},
	{"README.md", "whose values over 512 bytes travel by RDMA", "examples/kv", "short", 512},

	{"runtime/guide.md", "at most `ConnConfig.Conns` (128) connections", "runtime", "defaultConns", 128},
	{"runtime/guide.md", "`ConnConfig.Timeout` (30 s) bounds each Dial", "runtime", "defaultTimeout", int64(30 * time.Second)},
	{"runtime/guide.md", "at most ten lines a second", "runtime", "breaksPerSecond", 10},
	{"runtime/guide.md", "at most 248 bytes over iwarp", "hw/iwarp/wire", "MaxPrivateSiw", 248},
	{"runtime/guide.md", "sets up to 508", "hw/iwarp/wire", "MaxPrivateEnhanced", 508},

	{"SECURITY.md", "4 times the backlog and at least 1 024", "hw/iwarp", "leastHalfOpen", 1024},
	{"SECURITY.md", "by default the backlog and at least 256", "hw/iwarp", "leastHalfOpenIP", 256},
	{"SECURITY.md", "once it is 100 ms old", "hw/iwarp", "headStart", int64(100 * time.Millisecond)},
	{"SECURITY.md", "532 bytes for the request", "hw/iwarp/wire", "MaxMPASize", 532},
	{"SECURITY.md", "| private data | 512 bytes, of which 4 may be MPA's own |", "hw/iwarp/wire", "MaxPrivate", 512},
	{"SECURITY.md", "the service point's `Backlog`: 128;", "ep", "defaultBacklog", 128},
	{"SECURITY.md", "for `runtime/stream` 1 024", "runtime/stream", "defaultBacklog", 1024},
	{"SECURITY.md", "`MaxReadIn` of the endpoint, 256 at most", "hw/iwarp", "maxReads", 256},
	{"SECURITY.md", "more than was expected, 1.2 MiB to receive", "hw/iwarp", "spillSize", 160<<10 + 16*(64<<10+23)},
	{"SECURITY.md", "160 KiB to receive", "hw/iwarp", "readSize", 160 << 10},
	{"SECURITY.md", "a page has at most 100 rows", "runtime/inspect", "rowsOfPage", 100},
	{"SECURITY.md", "at most 4 pages are rendered at a time", "runtime/inspect", "renders", 4},
	{"SECURITY.md", "Visitors share one snapshot in a second", "runtime/inspect", "leastAge", int64(time.Second)},
	{"SECURITY.md", "to have requests measured, for ten minutes at most", "runtime/inspect", "longestMeasuring", int64(10 * time.Minute)},
	{"SECURITY.md", "for 30 seconds and in 64 MiB at most", "runtime/inspect", "longestTrace", int64(30 * time.Second)},
	{"SECURITY.md", "for 30 seconds and in 64 MiB at most", "runtime/inspect", "largestTrace", 64 << 20},

	{"ARCHITECTURE.md", "takes over when a poster has handled 64 posts", "ep/internal/line", "budget", 64},
	{"ARCHITECTURE.md", "gives posts to the provider, 64 at most", "ep/internal/line", "scratchWRs", 64},
	{"ARCHITECTURE.md", "or has moved 64 KiB", "ep/internal/line", "maxKept", 64 << 10},
	{"ARCHITECTURE.md", "There are 4 × `Depth` buffers", "runtime", "buffersPerDepth", 4},
	{"ARCHITECTURE.md", "2 × `Depth` for what this end sends", "runtime", "requestsPerDepth", 2},
	{"ARCHITECTURE.md", "at most 15 more", "runtime", "mostAtOnce", 1 + 15},
	{"ARCHITECTURE.md", "for what one call posts beyond 1 MiB", "hw/loop", "maxChunk", 1 << 20},
	{"ARCHITECTURE.md", "up to 508 bytes, 248 unless the parameter `private` says more", "hw/iwarp/wire", "MaxPrivateEnhanced", 508},
	{"ARCHITECTURE.md", "up to 508 bytes, 248 unless the parameter `private` says more", "hw/iwarp/wire", "MaxPrivateSiw", 248},

	{"hw/ibv/doc.go", "inline most bytes of an inline send (64)", "hw/ibv", "defaultInline", 64},
	{"hw/ibv/doc.go", "4.096 µs << n (17)", "hw/ibv", "defaultAckTimeout", 17},
	{"hw/ibv/doc.go", "is sent again, up to 7 (6);", "hw/ibv", "defaultRetries", 6},
	{"hw/ibv/doc.go", "hop_limit 0 to 255 (64)", "hw/ibv", "defaultHopLimit", 64},
	{"hw/ibv/doc.go", "unless given, every 30s if the peer is of this package", "hw/ibv", "defaultKeepalive", int64(30 * time.Second)},
	{"hw/iwarp/doc.go", "private data is at most 512 octets", "hw/iwarp/wire", "MaxPrivate", 512},
	{"hw/loop/doc.go", "1048576 unless set", "hw/loop", "maxChunk", 1 << 20},
	{"runtime/inspect/doc.go", "at most 4 requests render at a time", "runtime/inspect", "renders", 4},

	{"runtime/stream/doc.go", "A Write of 16 KiB or more lends", "runtime/stream", "leastLent", 16 << 10},
	{"runtime/stream/doc.go", "A Read of 64 KiB or more that finds nothing", "runtime/stream", "leastOffered", 64 << 10},
	{"runtime/stream/doc.go", "begins with a ring of 4 KiB", "runtime/stream", "leastRing", 4 << 10},
	{"runtime/stream/doc.go", "image, of up to 512 KiB", "runtime/stream", "mostImage", 512 << 10},
	{"runtime/stream/doc.go", "how many messages of 256 bytes", "runtime/stream", "slotSize", 256},
	{"runtime/stream/doc.go", "up to 224 bytes of the stream", "runtime/stream", "maxInline", 224},
	{"runtime/stream/doc.go", "from 4 KiB to 1 GiB", "runtime/stream", "mostRing", 1 << 30},
}

// words returns the words of a page with one space between two, without the marks of comments.
func words(t *testing.T, page string) string {
	text, err := os.ReadFile(path.Join(root, page))
	require.NoError(t, err)
	return strings.Join(strings.Fields(strings.ReplaceAll("\n"+string(text), "\n//", "\n")), " ")
}

func TestANumberOnAPageIsTheCodes(t *testing.T) {
	s, pages := newSource(), map[string]string{}
	for _, n := range numbers {
		if pages[n.page] == "" {
			pages[n.page] = words(t, n.page)
		}
		assert.True(t, strings.Contains(pages[n.page], n.sentence),
			"%s has no %q. If the sentence was changed, change it in numbers_test.go, with its number", n.page, n.sentence)
		pkg, err := s.Import(module + n.pkg)
		require.NoError(t, err)
		of, isConst := pkg.Scope().Lookup(n.name).(*types.Const)
		if !assert.True(t, isConst, "%s has no constant %s, which %s speaks of: %q", n.pkg, n.name, n.page, n.sentence) {
			continue
		}
		value, exact := constant.Int64Val(constant.ToInt(of.Val()))
		assert.True(t, exact && value == n.is, "%s.%s is %d, and %s says %q", n.pkg, n.name, value, n.page, n.sentence)
	}
}

// The README counts the cases of DAT conformance, and how many of them pass on each provider.
func TestTheReadmeCountsTheCasesOfTheConformanceTable(t *testing.T) {
	table, err := os.ReadFile(path.Join(root, "check/conformance/testdata/table.txt"))
	require.NoError(t, err)
	cases, passed, providers := 0, map[string]int{}, []string(nil)
	for line := range strings.Lines(string(table)) {
		fields := strings.Fields(line)
		switch {
		case len(fields) == 0 || fields[0] == "#":
		case fields[0] == "case":
			providers = fields[1:]
		default:
			cases++
			for i, provider := range providers {
				if fields[1+i] == "pass" {
					passed[provider]++
				}
			}
		}
	}
	readme := words(t, "README.md")
	for _, sentence := range []string{
		fmt.Sprintf("Of %d cases of DAT conformance, %d pass on `loop`", cases, passed["loop"]),
		fmt.Sprintf("%d on `hw/sim`, and %d on `iwarp`", passed["sim"], passed["iwarp"]),
		fmt.Sprintf("in a guest %d on soft-RoCE and %d on soft-iWARP", passed["rxe"], passed["siw"]),
	} {
		assert.True(t, strings.Contains(readme, sentence), "README.md does not say %q, as table.txt of check/conformance does", sentence)
	}
}
