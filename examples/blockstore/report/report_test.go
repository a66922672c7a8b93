package report

import (
	"bytes"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestTableShowsRatesAndPercentiles(t *testing.T) {
	a, b := NewLatency(), NewLatency()
	for range 99 {
		a.Record(100 * time.Microsecond)
	}
	b.Record(20 * time.Millisecond)
	a.Merge(b)
	var out bytes.Buffer
	Print(&out, Phase{Name: "store", Files: 7, Bytes: 50e6, Took: 2 * time.Second, Latency: a})
	for _, want := range []string{"store", "7", "100", "50.0", "2.00", "25", "50", "100µs", "20.1ms"} {
		assert.Contains(t, out.String(), want)
	}
}

func TestAPhaseWithoutDurationHasRates(t *testing.T) {
	var out bytes.Buffer
	Print(&out, Phase{Name: "nothing", Latency: NewLatency()})
	assert.NotContains(t, out.String(), "NaN")
	assert.NotContains(t, out.String(), "Inf")
}

func TestProgressIsShownOnTerminalsOnly(t *testing.T) {
	f, err := os.CreateTemp(t.TempDir(), "")
	require.NoError(t, err)
	defer f.Close()
	p := NewProgress(f, "x", 10)
	assert.Nil(t, p)
	p.Add(5)
	p.Close()

	var out bytes.Buffer
	p = newProgress(&out, "storing", 10)
	p.Add(20)
	p.Close()
	assert.Contains(t, out.String(), "storing")
}
