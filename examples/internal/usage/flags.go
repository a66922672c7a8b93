package usage

import (
	"errors"
	"flag"
	"fmt"
	"reflect"
	"slices"
)

// Flags makes a program of Go's flag package explain its flags as all examples do: a word has two dashes, a
// letter has one. The package takes one or two of either. how is printed before the flags. Flags that are declared
// before it may be given once, and not empty.
func Flags(f *flag.FlagSet, how string) {
	same := make(map[flag.Value]*once) // by values, of which one may have two names
	f.VisitAll(func(one *flag.Flag) {
		v := &once{Value: one.Value}
		if reflect.TypeOf(one.Value).Kind() == reflect.Pointer {
			if same[one.Value] == nil {
				same[one.Value] = v
			}
			v = same[one.Value]
		}
		one.Value = v
	})
	f.Usage = func() {
		fmt.Fprintf(f.Output(), "%s\n", how)
		f.VisitAll(func(one *flag.Flag) {
			dashes := "--"
			if len(one.Name) == 1 {
				dashes = "-"
			}
			plain := *one
			if v, is := one.Value.(*once); is {
				plain.Value = v.Value
			}
			value, help := flag.UnquoteUsage(&plain)
			if value != "" {
				value = " " + value
			}
			if !slices.Contains([]string{"", "0", "0s", "false"}, one.DefValue) {
				help += " (default " + one.DefValue + ")"
			}
			fmt.Fprintf(f.Output(), "  %s%s%s\n    \t%s\n", dashes, one.Name, value, help)
		})
	}
}

// once is the value of a flag that is given once, and not empty.
type once struct {
	flag.Value
	given bool
}

// Set implements flag.Value.
func (o *once) Set(text string) error {
	switch {
	case o.given:
		return errors.New("it is given twice")
	case text == "":
		return errors.New("it is empty: leave it out")
	}
	o.given = true
	return o.Value.Set(text)
}

// IsBoolFlag says to package flag whether the flag goes without a value.
func (o *once) IsBoolFlag() bool {
	v, may := o.Value.(interface{ IsBoolFlag() bool })
	return may && v.IsBoolFlag()
}
