package usage

import (
	"errors"
	"fmt"
	"reflect"
	"strings"

	"github.com/alecthomas/kong"
)

// Strict makes kong refuse what it would take for something else: an option that has one value and is given twice, of
// which the last would win; an empty value, which would be the default; and a number below the tag least of its
// field, or above its tag most.
func Strict() kong.Option { return kong.WithBeforeApply(strict) }

func strict(ctx *kong.Context) error {
	given := make(map[*kong.Flag]bool)
	for _, path := range ctx.Path {
		var err error
		name, value := "", (*kong.Value)(nil)
		switch {
		case path.Flag != nil && given[path.Flag] && !path.Flag.IsCumulative():
			return fmt.Errorf("--%s is given twice", path.Flag.Name)
		case path.Flag != nil:
			given[path.Flag] = true
			name, value = "--"+path.Flag.Name, path.Flag.Value
		case path.Positional != nil:
			name, value = path.Positional.Name, path.Positional
		default:
			continue
		}
		if isEmpty(ctx, path, value) {
			err = errEmpty
		} else {
			err = within(value.Tag, ctx.Value(path))
		}
		if err != nil {
			return fmt.Errorf("%s %w", name, err)
		}
	}
	return nil
}

var errEmpty = errors.New("is empty: leave it out")

// isEmpty reports whether the word that a value comes from has none.
func isEmpty(ctx *kong.Context, path *kong.Path, value *kong.Value) bool {
	if value.IsBool() || value.IsCounter() {
		return false // of which several may be in a word
	}
	word := ctx.Args[len(ctx.Args)-len(path.Remainder())-1]
	return word == "" || path.Flag != nil && strings.HasPrefix(word, "--") && strings.Index(word, "=") == len(word)-1
}

// within refuses a number that the tags of its field exclude.
func within(tag *kong.Tag, v reflect.Value) error {
	if !tag.Has("least") {
		return nil
	}
	least, err := tag.GetInt("least")
	if err != nil {
		return err
	}
	if !tag.Has("most") {
		if below, _ := compare(v, least, least); below {
			return fmt.Errorf("%v; it may be %d or more", v, least)
		}
		return nil
	}
	most, err := tag.GetInt("most")
	if below, above := compare(v, least, most); err == nil && (below || above) {
		err = fmt.Errorf("%v; it may be %d to %d", v, least, most)
	}
	return err
}

// compare says on which side of bounds a number is.
func compare(v reflect.Value, least, most int64) (below, above bool) {
	if v.CanUint() {
		return v.Uint() < uint64(least), v.Uint() > uint64(most)
	}
	return v.Int() < least, v.Int() > most
}
