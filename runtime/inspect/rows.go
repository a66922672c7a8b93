package inspect

import (
	"cmp"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"
	"unicode"

	"godat/evd"
	dat "godat/runtime"
)

// row is what a program or a package adds to a snapshot: a struct, of which nothing is known.
type row = any

// rowFields are the columns of rows: the exported fields of the first struct among them. Rows that
// are something else, as those that say that their function panicked, have all in the first column.
func rowFields(rows []row) (list []field[row]) {
	if of := structOf(rows); of != nil {
		return structFields(of, func(r *row) any { return *r })
	}
	return []field[row]{{"row", func(r *row) value { return word(fmt.Sprint(*r)) }}}
}

// structOf is the first struct among rows; nil if there is none with a field to show.
func structOf(rows []row) reflect.Type {
	for _, r := range rows {
		if of := reflect.TypeOf(r); of != nil && of.Kind() == reflect.Struct && len(structFields(of, func(r *row) any { return *r })) > 0 {
			return of
		}
	}
	return nil
}

// structFields are columns for the exported fields of a struct that is in a T, those of embedded
// structs among them.
func structFields[T any](of reflect.Type, in func(*T) any) (list []field[T]) {
	for _, f := range reflect.VisibleFields(of) {
		if !f.IsExported() || f.Anonymous {
			continue
		}
		first := len(list) == 0
		list = append(list, field[T]{columnName(f.Name), func(t *T) value {
			if v := reflect.ValueOf(in(t)); v.IsValid() && v.Type() == of {
				return valueOf(v.FieldByIndex(f.Index))
			} else if v.IsValid() && first {
				return word(fmt.Sprint(v))
			}
			return word("")
		}})
	}
	return list
}

// columnName makes words of a field's name: "OldestAge" is "oldest age".
func columnName(name string) string {
	var text strings.Builder
	last := ' '
	for _, r := range name {
		if unicode.IsUpper(r) && unicode.IsLower(last) {
			text.WriteByte(' ')
		}
		last = r
		text.WriteRune(r)
	}
	return strings.ToLower(text.String())
}

// valueOf is what a field has, for people.
func valueOf(v reflect.Value) value {
	switch said := v.Interface().(type) {
	case *evd.HistogramSnapshot:
		if said == nil {
			return lasting(0)
		}
		return value{text: "99 % in " + ago(said.P99), number: float64(said.P99)}
	case time.Duration:
		return lasting(said)
	case time.Time, fmt.Stringer:
		return word(fmt.Sprint(said))
	}
	switch {
	case v.CanInt():
		return count(int(v.Int()))
	case v.CanUint():
		return count(v.Uint())
	case v.CanFloat():
		return value{text: fmt.Sprintf("%.3g", v.Float()), number: v.Float()}
	case v.Kind() == reflect.Bool && !v.Bool(), v.IsZero():
		return word("")
	case v.Kind() == reflect.Bool:
		return word("yes")
	}
	return word(fmt.Sprint(v))
}

// rows looks at what reports say of themselves.
func (f *finder) rows() {
	for _, kind := range slices.Sorted(maps.Keys(f.now.Reports)) {
		rows := f.now.Reports[kind]
		fields := rowFields(rows)
		for i := range rows {
			name := cmp.Or(fields[0].of(&rows[i]).text, kind)
			f.row(kind, name, headOf(kind, name), "", rows[i])
		}
	}
}

// row tells the trouble of a row, or of what an endpoint's owner says.
func (f *finder) row(show, name, head, prefix string, r row) {
	if t, ok := r.(dat.Troubled); ok {
		if text := t.Trouble(late); text != "" {
			t := trouble{Kind: show, Show: show, Name: name, Head: head, Text: prefix + text, rank: rankOf[show], misses: missed(r)}
			if j, ok := r.(Joined); ok {
				t.with, t.explained = j.Connections()
			}
			if t.misses != "" {
				t.rank = max(t.rank, 0) // nobody feels it
			}
			if is, peers := caused(r); is {
				t.rank, t.peers = felt-1, peers
			}
			f.put(t)
		}
	}
}
