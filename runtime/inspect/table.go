package inspect

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"godat/evd"
)

const rowsOfPage = 100

// value is what a row has in a column: a word, or a number, of which the text is for people.
type value struct {
	text   string
	number float64
	plain  bool                   // it is a word
	bars   *evd.HistogramSnapshot // it is drawn; or nil
}

// isNumber reports whether the value stands at the right of its column.
func isNumber(v value) bool { return !v.plain && v.bars == nil }

// field is a column of a list of T.
type field[T any] struct {
	name string
	of   func(*T) value
}

type cell struct {
	Text, Link string
	Number     bool
	Drawn      *drawing
}

// column is the head of a column, with the link that sorts by it.
type column struct {
	Name, Link, Sorted string
	Number             bool
}

// table is a page of a list.
type table struct {
	Columns                      []column `json:"-"`
	Rows                         [][]cell `json:"-"`
	Items                        any      // the objects of the page
	Total, Matching, Page, Pages int
	Previous, Next               string `json:"-"` // links
}

// tabulate makes the table that the query asks for. story says whether a row's first value
// leads to a story.
func tabulate[T any](list []T, fields []field[T], q query, story bool) *table {
	t := &table{Total: len(list)}
	rows := matching(list, fields, strings.ToLower(q.filter))
	by, down := q.descending()
	for _, f := range fields {
		c := column{Name: f.name, Link: q.with("sort", f.name, "page", "")}
		if f.name == by {
			sortRows(rows, f, down)
			c.Sorted = "ascending"
			if down {
				c.Sorted = "descending"
			}
		}
		if f.name == by && !down || f.name != by && len(list) > 0 && !f.of(&list[0]).plain {
			c.Link = q.with("sort", "-"+f.name, "page", "") // the largest first
		}
		c.Number = len(list) > 0 && isNumber(f.of(&list[0]))
		t.Columns = append(t.Columns, c)
	}
	t.Matching = len(rows)
	t.Pages = max(1, (len(rows)+rowsOfPage-1)/rowsOfPage)
	t.Page = min(max(q.page, 1), t.Pages)
	rows = rows[(t.Page-1)*rowsOfPage : min(t.Page*rowsOfPage, len(rows))]
	if t.Page > 1 {
		t.Previous = q.with("page", fmt.Sprint(t.Page-1))
	}
	if t.Page < t.Pages {
		t.Next = q.with("page", fmt.Sprint(t.Page+1))
	}
	items := make([]T, len(rows))
	for i, r := range rows {
		items[i] = *r
		cells := make([]cell, len(fields))
		for j, f := range fields {
			v := f.of(r)
			cells[j] = cell{Text: v.text, Number: isNumber(v)}
			if v.bars != nil {
				cells[j].Drawn = draw(v.bars)
			}
		}
		if story {
			cells[0].Link = q.with("of", cells[0].Text)
		}
		t.Rows = append(t.Rows, cells)
	}
	t.Items = items
	return t
}

// natural compares texts, and the numbers in them as numbers: "Endpoint(2)" is before "Endpoint(10)".
func natural(a, b string) int {
	for a != "" && b != "" {
		m, n := digits(a), digits(b)
		if m == 0 || n == 0 {
			if a[0] != b[0] {
				return cmp.Compare(a[0], b[0])
			}
			a, b = a[1:], b[1:]
			continue
		}
		x, y := strings.TrimLeft(a[:m], "0"), strings.TrimLeft(b[:n], "0")
		if c := cmp.Or(cmp.Compare(len(x), len(y)), strings.Compare(x, y)); c != 0 {
			return c
		}
		a, b = a[m:], b[n:]
	}
	return cmp.Compare(len(a), len(b))
}

// digits is how many digits a text begins with.
func digits(text string) int { return len(text) - len(strings.TrimLeft(text, "0123456789")) }

// matching are the rows of which a word contains the filter.
func matching[T any](list []T, fields []field[T], filter string) (rows []*T) {
	for i := range list {
		contains := func(f field[T]) bool {
			v := f.of(&list[i])
			return v.plain && strings.Contains(strings.ToLower(v.text), filter)
		}
		if filter == "" || slices.ContainsFunc(fields, contains) {
			rows = append(rows, &list[i])
		}
	}
	return rows
}

// sortRows sorts by a column, each of whose values it makes once.
func sortRows[T any](rows []*T, f field[T], down bool) {
	type keyed struct {
		value
		row *T
	}
	keys := make([]keyed, len(rows))
	for i, r := range rows {
		keys[i] = keyed{f.of(r), r}
	}
	slices.SortStableFunc(keys, func(a, b keyed) int {
		if down {
			a, b = b, a
		}
		if a.plain {
			return natural(a.text, b.text)
		}
		return cmp.Compare(a.number, b.number)
	})
	for i, k := range keys {
		rows[i] = k.row
	}
}

func word(text string) value { return value{text: text, plain: true} }

func count[N int | uint64](n N) value { return value{text: number(n), number: float64(n)} }

func bytesOf(n uint64) value { return value{text: octets(n), number: float64(n)} }

// lasting is a time that something has taken; 0 is none.
func lasting(d time.Duration) value {
	if d <= 0 {
		return value{text: "–"}
	}
	return value{text: ago(d), number: float64(d)}
}

// number writes a number with a space between thousands.
func number[N int | uint64](n N) string {
	return grouped(fmt.Sprint(n))
}

func grouped(text string) string {
	for i := len(text) - 3; i > 0 && text[i-1] != '-'; i -= 3 {
		text = text[:i] + "\u202f" + text[i:]
	}
	return text
}

func octets(n uint64) string {
	const units = "KMGTPE"
	if n < 1024 {
		return fmt.Sprintf("%d B", n)
	}
	f, i := float64(n)/1024, 0
	for f >= 1000 && i < len(units)-1 {
		f /= 1024
		i++
	}
	return fmt.Sprintf("%.3g %ciB", f, units[i])
}

func ago(d time.Duration) string {
	d = max(d, 0) // what happens beside a snapshot may be later than it
	switch {
	case d < time.Microsecond:
		return fmt.Sprintf("%d ns", d.Nanoseconds())
	case d < time.Millisecond:
		return fmt.Sprintf("%d µs", d.Microseconds())
	case d < time.Second:
		return fmt.Sprintf("%d ms", d.Milliseconds())
	case d < time.Minute:
		return fmt.Sprintf("%.3g s", d.Seconds())
	case d < time.Hour:
		return fmt.Sprintf("%d min %02d s", int(d.Minutes()), int(d.Seconds())%60)
	case d < 48*time.Hour:
		return fmt.Sprintf("%d h %02d min", int(d.Hours()), int(d.Minutes())%60)
	}
	return fmt.Sprintf("%d days", int(d.Hours())/24)
}
