package main

import (
	"errors"
	"fmt"
	"runtime/debug"

	"godat/examples/volume/node"
)

// versionFlag is an option that says which program this is.
type versionFlag bool

// errVersion is the end of a command line that asks for nothing else.
var errVersion = errors.New("the version is asked for")

// BeforeReset implements kong's hook: no command is needed.
func (versionFlag) BeforeReset() error { return errVersion }

// version says which program this is, and what it speaks and reads.
func version() string {
	built, from := "unknown", ""
	if info, ok := debug.ReadBuildInfo(); ok {
		built = info.GoVersion
		for _, s := range info.Settings {
			switch {
			case s.Key == "vcs.revision":
				from = ", commit " + s.Value + from
			case s.Key == "vcs.modified" && s.Value == "true":
				from += " and changes"
			}
		}
	}
	least, most := node.Versions()
	return fmt.Sprintf("volume, built by %s%s; nodes speak versions %d to %d; directories are of format %d; tokens up to version %d",
		built, from, least, most, format, tokenVersion)
}
