package inspect

import (
	"html"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	dat "godat/runtime"
)

func TestWhatIsWrongWithAnotherAdapterIsToldToo(t *testing.T) {
	staged(t, dat.ConnConfig{}, func(r *rig) {
		other, err := dat.Open(r.t.Context(), "loop")
		require.NoError(r.t, err)
		r.h = New(r.ia, other)
		full := true
		_, err = other.Report("disks", func() []any { return []any{disk{Name: "b", Full: full}} })
		require.NoError(r.t, err)
		body := r.get("").Body.String()
		assert.Contains(r.t, body, "loop#2, disk b</a>: is full: delete something")
		assert.Contains(r.t, body, "<title>1 trouble")
		_, link, _ := strings.Cut(body, `<li><a href="`)
		link, _, _ = strings.Cut(link, `"`)
		assert.Contains(r.t, r.get(html.UnescapeString(link)).Body.String(), "<td>b</td>", "the line leads to the other adapter's list")
		assert.Equal(r.t, "disk b", r.ask("?adapter=1&format=json").Troubles[0].Head, "on its own page")

		full = false
		time.Sleep(leastAge)
		assert.Contains(r.t, r.get("").Body.String(), "Nothing is wrong")
		require.NoError(r.t, other.Close())
		time.Sleep(leastAge)
		assert.Contains(r.t, r.get("").Body.String(), "Nothing is wrong", "with those that are open")
	})
}
