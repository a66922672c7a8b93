package report

import (
	"bytes"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/net/html"

	"godat/bench/load"
)

// parsed writes the page, and returns its text and its elements.
func parsed(t *testing.T, r *Report) (text string, all []*html.Node) {
	t.Helper()
	var out bytes.Buffer
	require.NoError(t, r.WriteHTML(&out))
	root, err := html.Parse(bytes.NewReader(out.Bytes()))
	require.NoError(t, err)
	for n := range root.Descendants() {
		if n.Type == html.ElementNode {
			all = append(all, n)
		}
	}
	return out.String(), all
}

// content is the text inside an element.
func content(n *html.Node) string {
	var b strings.Builder
	for d := range n.Descendants() {
		if d.Type == html.TextNode {
			b.WriteString(d.Data)
		}
	}
	return b.String()
}

// inside are the texts of the elements of a name, in their order.
func inside(all []*html.Node, name string) (list []string) {
	for _, n := range all {
		if n.Data == name {
			list = append(list, content(n))
		}
	}
	return list
}

// loads is a report of two loads in open loop, and two sizes in closed loop.
func loads() *Report {
	r := reportOf(
		measured(polled, 10_000, 400, 1), measured(channel, 10_000, 900, 0.1),
		measured(polled, 100_000, 400, 1), repeated(channel, 100_000, 0.3, twoStates...),
		Row{Name: "net.Pipe", Anchor: true, Size: 64, Depth: 16, Rate: load.Closed, Refused: "its post waits"},
		measured(channel, load.Closed, 300, 1),
	)
	bigger := measured(channel, load.Closed, 900, 1)
	bigger.Size = 4096
	r.Rows = append(r.Rows, bigger)
	r.Command = "<What?>"
	return r
}

func TestThePageHasEachTableAndSaysFirstWhetherTheMachineCouldAnswer(t *testing.T) {
	r := loads()
	text, all := parsed(t, r)
	for _, p := range inside(all, "p") {
		assert.Equal(t, r.Verdict(), p, "the first paragraph")
		break
	}
	titles, tables := strings.Join(inside(all, "h2"), "\n"), inside(all, "table")
	groups := r.groups()
	require.Len(t, tables, len(groups))
	for i, g := range groups {
		assert.Contains(t, titles, g.title)
		for _, row := range g.rows {
			if row.Refused == "" {
				assert.Contains(t, tables[i], row.Name)
			}
		}
	}
	assert.Contains(t, tables[1], "two states4× 515 ns, 5× 2.8 ms")
	assert.Equal(t, 9, strings.Count(text, "<svg "), "four loads, three charts by load, two by size")
	assert.Contains(t, text, "&lt;What?&gt;")
	assert.Contains(t, text, "its post waits")
	assert.Contains(t, text, "channel: two states, 4 repeats at 515 ns, 5 at 2.8 ms")
}

func TestThePageOfAMachineThatCouldNotAnswerSaysSoFirst(t *testing.T) {
	r := reportOf(repeated(polled, load.Closed, 1, twoStates...), measured(channel, load.Closed, 500, 1))
	text, all := parsed(t, r)
	assert.True(t, strings.HasPrefix(inside(all, "p")[0], "This machine could not answer: "))
	assert.Contains(t, text, `class="verdict unable"`)
	_, all = parsed(t, reportOf(Row{Name: channel, Rate: load.Closed, Refused: "no"}))
	assert.Empty(t, inside(all, "svg"))
	assert.Contains(t, inside(all, "p"), "Nothing could be measured.")
}

// The names of XML are addresses that nothing fetches.
func TestThePageFetchesNothing(t *testing.T) {
	text, all := parsed(t, loads())
	for _, n := range all {
		assert.NotContains(t, []string{"script", "link", "img", "iframe", "object", "embed", "base", "source", "use", "image"}, n.Data)
		for _, a := range n.Attr {
			switch key := strings.ToLower(a.Key); key {
			case "src", "srcset", "href", "data", "action", "poster":
				t.Errorf("%s has %s=%q", n.Data, key, a.Val)
			case "style":
				assert.NotContains(t, a.Val, "url(")
			default:
				if key != "xmlns" && a.Namespace != "xmlns" {
					assert.NotContains(t, a.Val, "://", "%s has %s=%q", n.Data, key, a.Val)
				}
			}
		}
	}
	for _, style := range inside(all, "style") {
		assert.NotContains(t, style, "url(")
		assert.NotContains(t, style, "@import")
	}
	assert.Contains(t, text, "var(--c1)")
	assert.Contains(t, text, "currentColor")
	assert.NotContains(t, text, "#010101", "every color is the theme's")
}
