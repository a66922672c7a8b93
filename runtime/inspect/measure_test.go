package inspect

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	dat "godat/runtime"
)

// switchBy asks for a switch as a browser does that says which site's page the visitor was on.
func (r *rig) switchBy(method, query, site string) *httptest.ResponseRecorder {
	w, q := httptest.NewRecorder(), httptest.NewRequest(method, "/debug/godat/"+query, nil)
	if site != "" {
		q.Header.Set("Sec-Fetch-Site", site)
	}
	r.h.ServeHTTP(w, q)
	return w
}

func TestAVisitorMeasuresForAWhile(t *testing.T) {
	staged(t, dat.ConnConfig{}, func(r *rig) {
		r.h.LetMeasure()
		measure := func(seconds int) {
			w := r.switchBy(http.MethodPost, fmt.Sprint("?show=latencies&filter=x&measure=", seconds), "same-origin")
			require.Equal(t, http.StatusSeeOther, w.Code)
			require.Equal(t, "?filter=x&show=latencies", w.Header().Get("Location"), "another look switches nothing")
		}
		text := func() string { return r.get("?show=latencies").Body.String() }
		assert.Contains(t, text(), "not measured now. Measure for")
		measure(10)
		assert.True(t, r.ia.MeasuresLatency())
		assert.Contains(t, text(), "measured, for 10 s more")
		time.Sleep(9 * time.Second)
		measure(10)
		time.Sleep(9 * time.Second)
		assert.True(t, r.ia.MeasuresLatency(), "it began anew")
		time.Sleep(time.Second)
		synctest.Wait()
		assert.False(t, r.ia.MeasuresLatency())
		measure(1e9)
		assert.Contains(t, text(), "for 10 min 00 s more", "a visitor does not measure for ever")
		measure(0)
		assert.False(t, r.ia.MeasuresLatency())
		stop, err := r.ia.MeasureLatency()
		require.NoError(t, err)
		assert.Contains(t, text(), "The program has")
		measure(1)
		measure(0)
		assert.True(t, r.ia.MeasuresLatency(), "the program's own goes on")
		stop()
		measure(3600)
		require.NoError(t, r.ia.Close())
		time.Sleep(leastAge)
		assert.Equal(t, http.StatusServiceUnavailable, r.get("?show=latencies").Code)
		assert.Equal(t, http.StatusSeeOther, r.switchBy(http.MethodPost, "?measure=0", "").Code)
		assert.Equal(t, http.StatusServiceUnavailable, r.switchBy(http.MethodPost, "?measure=1", "").Code)
	})
}

func TestNobodySwitchesWhatTheProgramDoesNotLet(t *testing.T) {
	r := newRig(t, 0, dat.ConnConfig{})
	assert.Equal(t, http.StatusMethodNotAllowed, r.switchBy(http.MethodPost, "?measure=10", "").Code)
	assert.Contains(t, r.get("?show=latencies").Body.String(), "lets no visitor switch that on")
	r.h.LetMeasure()
	for _, site := range []string{"cross-site", "same-site"} {
		assert.Equal(t, http.StatusForbidden, r.switchBy(http.MethodPost, "?measure=10", site).Code, "a page of another site has the browser ask")
	}
	assert.Equal(t, http.StatusForbidden, r.switchBy(http.MethodPost, "?of=x&trace=start", "").Code, "it lets nobody trace")
	assert.Equal(t, http.StatusBadRequest, r.switchBy(http.MethodPost, "", "").Code)
	assert.Equal(t, http.StatusOK, r.get("?measure=10").Code, "a GET only shows")
	assert.Equal(t, http.StatusBadRequest, r.switchBy(http.MethodPost, "?measure=x", "").Code)
	assert.False(t, r.ia.MeasuresLatency())
}
