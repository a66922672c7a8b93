package usage

import (
	"flag"
	"fmt"
	"slices"
)

// Flags makes a program of Go's flag package explain its flags as all examples do: a word has two dashes, a
// letter has one. The package takes one or two of either. how is printed before the flags.
func Flags(f *flag.FlagSet, how string) {
	f.Usage = func() {
		fmt.Fprintf(f.Output(), "%s\n", how)
		f.VisitAll(func(one *flag.Flag) {
			dashes := "--"
			if len(one.Name) == 1 {
				dashes = "-"
			}
			value, help := flag.UnquoteUsage(one)
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
