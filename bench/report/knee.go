package report

import (
	"fmt"
	"math"
	"strings"
)

const (
	kneePercent = 99
	kneeGrowth  = 3 // how much the percentile grows at most up to the knee
)

// knee returns the greatest load, of rows by rising load, before the 99th percentile
// grows to over three times its least at lower loads, or before the load is not kept up
// with. It returns nil if neither happens at the loads measured, or both from the first.
func knee(rows []*Row) (last *Row) {
	least := math.Inf(1)
	for _, row := range rows {
		ns, ok := row.At(kneePercent)
		if row.Saturated || ok && ns > kneeGrowth*least {
			return last
		}
		if ok {
			least, last = min(least, ns), row
		}
	}
	return nil
}

// kneeSays explains the marks of knees, of which there may be none.
func kneeSays(knees []string) string {
	says := fmt.Sprintf("A dot marks the knee: the greatest load before the percentile grows to over %d times its least, or the load is not kept up with. "+
		"A line without a dot has its knee beyond the loads measured.", kneeGrowth)
	if len(knees) == 0 {
		return says
	}
	return says + " Knees: " + strings.Join(knees, ", ") + "."
}
