package inspect

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"math/bits"
	"reflect"
	"slices"
	"time"

	"godat/evd"
	dat "godat/runtime"
)

// timed is what has a histogram: the requests of a dispatcher, or a field of a row.
type timed struct {
	Name, What string
	Latency    *evd.HistogramSnapshot
}

// timesOf finds the histograms of a snapshot.
func timesOf(s *dat.Snapshot) (list []timed) {
	for i := range s.Dispatchers {
		if d := &s.Dispatchers[i]; d.Latency != nil {
			list = append(list, timed{cmp.Or(d.Owner, d.Name), "requests", d.Latency})
		}
	}
	for _, kind := range slices.Sorted(maps.Keys(s.Reports)) {
		rows := s.Reports[kind]
		of := structOf(rows)
		if of == nil {
			continue
		}
		name := structFields(of, func(r *row) any { return *r })[0]
		for _, f := range reflect.VisibleFields(of) {
			if !f.IsExported() || f.Type != reflect.TypeFor[*evd.HistogramSnapshot]() {
				continue
			}
			for i := range rows {
				if v := reflect.ValueOf(rows[i]); v.Type() == of && !v.FieldByIndex(f.Index).IsNil() {
					list = append(list, timed{name.of(&rows[i]).text, kind + ": " + columnName(f.Name), v.FieldByIndex(f.Index).Interface().(*evd.HistogramSnapshot)})
				}
			}
		}
	}
	return list
}

var timedFields = []field[timed]{
	{"name", func(t *timed) value { return word(t.Name) }},
	{"times", func(t *timed) value { return value{bars: t.Latency, number: float64(t.Latency.Max)} }},
	{"of what", func(t *timed) value { return word(t.What) }},
	{"count", func(t *timed) value { return count(t.Latency.Count) }},
	{"mean", func(t *timed) value { return lasting(t.Latency.Sum / time.Duration(t.Latency.Count)) }},
	{"median", func(t *timed) value { return lasting(t.Latency.P50) }},
	{"99 %", func(t *timed) value { return lasting(t.Latency.P99) }},
	{"99.9 %", func(t *timed) value { return lasting(t.Latency.P999) }},
	{"longest", func(t *timed) value { return lasting(t.Latency.Max) }},
}

// A drawing has a bar for the times below each power of two of nanoseconds. All drawings begin and
// end with the same, so that they compare; shorter and longer times are in the first and the last.
const (
	firstBar  = 8 // below 256 ns
	lastBar   = 34
	barWidth  = 8
	barHeight = 40
)

// drawing is a histogram as the page draws it.
type drawing struct {
	Width, Height, Foot int
	Bars                []bar
	Ticks               []tick
	Label               string
}

type bar struct {
	X, Y, Width, Height int
	Title               string
}

// tick is a time on the axis.
type tick struct {
	X    int
	Text string
}

func draw(h *evd.HistogramSnapshot) *drawing {
	d := &drawing{Width: (lastBar - firstBar + 1) * barWidth, Height: barHeight + 14, Foot: barHeight, Label: fmt.Sprintf("%s times; median %s, 99 %% below %s, longest %s", number(h.Count), ago(h.P50), ago(h.P99), ago(h.Max))}
	var counts [lastBar + 1]uint64
	for _, b := range h.Bars {
		counts[min(max(bits.Len64(uint64(b.Below))-1, firstBar), lastBar)] += b.Count
	}
	most := slices.Max(counts[:])
	for i, n := range counts {
		if n == 0 {
			continue
		}
		height := max(1, int(math.Round(float64(n)*barHeight/float64(most))))
		upTo := "below " + ago(1<<i)
		if i == lastBar {
			upTo = ago(1<<(i-1)) + " and more"
		}
		d.Bars = append(d.Bars, bar{(i-firstBar)*barWidth + 1, barHeight - height, barWidth - 1, height, fmt.Sprintf("%s: %s of %s", upTo, number(n), number(h.Count))})
	}
	for _, t := range []struct {
		power int
		text  string
	}{{10, "1 µs"}, {20, "1 ms"}, {30, "1 s"}} { // which are 2 % to 7 % beside
		d.Ticks = append(d.Ticks, tick{(t.power - firstBar + 1) * barWidth, t.text})
	}
	return d
}
