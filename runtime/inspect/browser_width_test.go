//go:build chromium

package inspect

import (
	"fmt"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	dat "godat/runtime"
)

// look sets the width of the page, in pixels, and its scheme of colors.
func (b *browser) look(width int, scheme string) {
	b.t.Helper()
	require.NoError(b.t, b.do("Emulation.setDeviceMetricsOverride", map[string]any{"width": width, "height": 800, "deviceScaleFactor": 1, "mobile": false}, &struct{}{}))
	require.NoError(b.t, b.do("Emulation.setEmulatedMedia", map[string]any{"features": []map[string]string{{"name": "prefers-color-scheme", "value": scheme}}}, &struct{}{}))
}

// said is the value of an expression in the page.
func (b *browser) said(expression string) string {
	b.t.Helper()
	var said struct{ Result struct{ Value string } }
	require.NoError(b.t, b.do("Runtime.evaluate", map[string]any{"expression": expression}, &said))
	return said.Result.Value
}

// seenAtOnce says what a visitor does not see of the page without scrolling: what is wider than the
// page, the first trouble if it is not in view, and a line of troubles that can hardly be told from its
// ground; empty if all is well.
const seenAtOnce = `(() => {
	const wrong = [];
	const page = document.documentElement;
	if (page.scrollWidth > innerWidth) {
		wrong.push("the page is " + page.scrollWidth + " wide, in a window of " + innerWidth);
		for (const e of document.querySelectorAll("body *")) {
			if (e.getBoundingClientRect().right > innerWidth && !e.parentElement.closest(".wide")) wrong.push(e.outerHTML.slice(0, 100));
		}
	}
	const first = document.querySelector(".troubles li");
	if (!first) return "no trouble";
	const at = first.getBoundingClientRect();
	if (scrollY != 0 || at.top < 0 || at.bottom > innerHeight) wrong.push("the first trouble is at " + at.top + " to " + at.bottom);
	const light = (color) => {
		const part = (c) => c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4;
		const [r, g, b] = color.match(/[\d.]+/g).map((c) => part(c / 255));
		return 0.2126 * r + 0.7152 * g + 0.0722 * b;
	};
	const ground = light(getComputedStyle(first).backgroundColor);
	for (const e of [first, first.querySelector("a")]) {
		const text = light(getComputedStyle(e).color);
		const contrast = (Math.max(text, ground) + 0.05) / (Math.min(text, ground) + 0.05);
		if (contrast < 4.5) wrong.push("the contrast of the first trouble is " + contrast);
	}
	return wrong.join("; ");
})()`

func TestABrowserShowsTheFirstTroubleAtOnceAtAnyWidthAndScheme(t *testing.T) {
	three := newRig(t, 1, dat.ConnConfig{})
	_, err := three.ln.Dial(three.ln.Addr(), nil)
	require.NoError(t, err)
	ln, ia, _, _ := crowd(t, 5000)
	crowded := &rig{t, ia, ln, New(ia)}
	b := newBrowser(t)
	for count, r := range map[int]*rig{3: three, 10000: crowded} {
		_, err := r.ia.Report("disks", func() (rows []any) {
			for range ofEach {
				rows = append(rows, disk{Name: strings.Repeat("alongname", 20), Full: true})
			}
			return rows
		})
		require.NoError(t, err)
		s, err := r.ia.Snapshot()
		require.NoError(t, err)
		require.Len(t, s.Conns, count)
		server := httptest.NewServer(r.h.LetMeasure())
		defer server.Close()
		pages := map[string]string{"a story": "?of=" + url.QueryEscape(s.Conns[0].Name)}
		for _, l := range lists(&seen{Snapshot: s}) {
			pages[l.name] = "?show=" + url.QueryEscape(l.name)
		}
		for _, width := range []int{1280, 400} {
			for _, scheme := range []string{"light", "dark"} {
				b.look(width, scheme)
				for name, query := range pages {
					b.open(server.URL + query)
					b.until(fmt.Sprintf(`location.search == %q && document.readyState == "complete"`, query))
					assert.True(t, b.is(fmt.Sprintf(`innerWidth == %d && matchMedia("(prefers-color-scheme: %s)").matches`, width, scheme)))
					assert.Empty(t, b.said(seenAtOnce), "%s of %d connections, %d wide, %s", name, count, width, scheme)
				}
			}
		}
	}
}
