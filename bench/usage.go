package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/alecthomas/kong"

	"godat/hw"
)

// errUsage is the error of a command line that makes no sense. It has an exit status of its own.
var errUsage = errors.New("--help lists the commands and their flags")

const statusUsage = 2

// misused says that a command line makes no sense, and why.
func misused(why error) error { return fmt.Errorf("%w; %w", why, errUsage) }

func misusedf(format string, args ...any) error { return misused(fmt.Errorf(format, args...)) }

// empty refuses values that are empty. Each flag would take one for its default, or for a list of
// nothing.
func empty(args []string) error {
	for i, arg := range args {
		name, value, has := strings.Cut(arg, "=")
		switch {
		case arg == "" && i > 0:
			return misusedf("an empty word behind %s: leave out both", args[i-1])
		case arg == "":
			return misusedf("an empty word")
		case has && value == "" && strings.HasPrefix(arg, "--"):
			return misusedf("%s is empty: leave it out", name)
		}
	}
	return nil
}

// once refuses an option that has one value and is given twice. The last one would win.
func once(ctx *kong.Context) error {
	given := make(map[*kong.Flag]bool)
	for _, path := range ctx.Path {
		if f := path.Flag; f != nil {
			if given[f] && !f.IsCumulative() {
				return fmt.Errorf("--%s twice", f.Name)
			}
			given[f] = true
		}
	}
	return nil
}

// twice refuses a list that has a value twice: its rows would not be told from each other.
func twice[T any](what string, list []T) error {
	seen := map[string]bool{}
	for _, v := range list {
		text := fmt.Sprint(v)
		if seen[text] {
			return misusedf("%s %s twice", what, text)
		}
		seen[text] = true
	}
	return nil
}

// unopened makes an error by which an adapter could not be opened as the command line says one of the
// command line.
func unopened(err error) error {
	for _, t := range []hw.Type{hw.ProviderNotFound, hw.InvalidParameter} {
		if errors.Is(err, &hw.Error{Type: t}) {
			return misused(err)
		}
	}
	return err
}
