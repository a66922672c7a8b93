package report

import (
	"slices"

	"godat/bench/load"
)

// note is what some rows among peers do.
type note struct{ Names, Does string }

// notes returns what the rows do, each text once, with the names of its rows.
func (r *Report) notes() (list []note) {
	var seen []string
	for i := range r.Rows {
		row := &r.Rows[i]
		if row.Does == "" || slices.Contains(seen, row.Name) {
			continue
		}
		seen = append(seen, row.Name)
		at := slices.IndexFunc(list, func(n note) bool { return n.Does == row.Does })
		if at < 0 {
			list = append(list, note{row.Name, row.Does})
		} else {
			list[at].Names += ", " + row.Name
		}
	}
	return list
}

// way is what the messages of a row among peers do.
func (r *Row) way() string {
	if r.Rate == load.Closed {
		return "round trips"
	}
	return "messages one way"
}
