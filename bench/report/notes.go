package report

import (
	"slices"
	"strings"

	"godat/bench/load"
)

// note is what is said of some rows.
type note struct {
	names []string
	text  string
}

// add adds a row's name to the note of a text.
func add(list []note, text, name string) []note {
	at := slices.IndexFunc(list, func(n note) bool { return n.text == text })
	switch {
	case text == "":
		return list
	case at < 0:
		return append(list, note{[]string{name}, text})
	case !slices.Contains(list[at].names, name):
		list[at].names = append(list[at].names, name)
	}
	return list
}

func (n note) String() string { return strings.Join(n.names, ", ") }

// way is what the messages of a row among peers do.
func (r *Row) way() string {
	if r.Rate == load.Closed {
		return "round trips"
	}
	return "messages one way"
}
