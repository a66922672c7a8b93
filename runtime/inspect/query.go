package inspect

import (
	"cmp"
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"
)

// query is what a request asks for.
type query struct {
	adapter int
	show    string // the table
	of      string // the name of the connection, endpoint or end whose story it is; empty for the table
	filter  string // what a row's words contain
	sort    string // the column; with a - before it the largest first
	page    int    // from 1
	json    bool
	measure int    // of a POST: for so many seconds; -1 if nothing is said about it
	trace   string // of a POST: start or stop
}

// mostFilter is the most bytes of a filter: a hundred characters, which the page's form lets a
// visitor type. So every link that has it, each byte written as three, is shorter than longest.
const mostFilter = 400

// errNotHere says that the request's object is not there.
var errNotHere = errors.New("there is no such thing here (any more)")

// parseQuery parses a query of a bounded length.
func parseQuery(raw string, adapters int) (q query, err error) {
	if len(raw) > longest {
		return q, fmt.Errorf("a query of %d bytes; the longest has %d", len(raw), longest)
	}
	values, err := url.ParseQuery(raw)
	if err != nil {
		return q, err
	}
	q = query{
		show: cmp.Or(values.Get("show"), "connections"), page: 1, measure: -1, of: values.Get("of"), filter: values.Get("filter"), sort: values.Get("sort"),
		json: values.Get("format") == "json", trace: values.Get("trace"),
	}
	for name, to := range map[string]*int{"adapter": &q.adapter, "page": &q.page, "measure": &q.measure} {
		if text := values.Get(name); text != "" {
			if *to, err = strconv.Atoi(text); err != nil {
				return q, fmt.Errorf("%s: %w", name, err)
			}
		}
	}
	if n := max(len(q.filter), len(q.sort)); n > mostFilter {
		return q, fmt.Errorf("a filter, or the name of a column, of %d bytes; the longest has %d", n, mostFilter)
	}
	if q.adapter < 0 || q.adapter >= adapters {
		return q, fmt.Errorf("adapter %d of %d", q.adapter, adapters)
	}
	return q, nil
}

// with is the query of a link: this one with changes, of which each is a name and a value.
func (q query) with(changes ...string) string {
	values := url.Values{}
	set := func(name, value, usual string) {
		values.Del(name)
		if value != usual {
			values.Set(name, value)
		}
	}
	set("adapter", strconv.Itoa(q.adapter), "0")
	set("show", q.show, "connections")
	set("of", q.of, "")
	set("filter", q.filter, "")
	set("sort", q.sort, "")
	set("page", strconv.Itoa(q.page), "1")
	for i := 0; i < len(changes); i += 2 {
		set(changes[i], changes[i+1], "")
	}
	return "?" + values.Encode()
}

// descending splits the column to sort by.
func (q query) descending() (column string, down bool) {
	column, down = strings.CutPrefix(q.sort, "-")
	return column, down
}
