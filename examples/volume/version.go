package main

import (
	"errors"
	"fmt"
	"runtime"
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
	info, ok := debug.ReadBuildInfo()
	if !ok {
		info = &debug.BuildInfo{GoVersion: runtime.Version()}
	}
	least, most := node.Versions()
	return fmt.Sprintf("volume, %s; nodes speak versions %d to %d; directories are of format %d; tokens up to version %d",
		built(info), least, most, format, tokenVersion)
}

// built says by what a program was built, and from which commit: as the build has noted it, or by the module's version.
func built(info *debug.BuildInfo) string {
	from, changed := "", ""
	for _, s := range info.Settings {
		switch {
		case s.Key == "vcs.revision":
			from = "commit " + s.Value
		case s.Key == "vcs.modified" && s.Value == "true":
			changed = " and changes"
		}
	}
	switch version := info.Main.Version; {
	case from != "":
	case version != "" && version != "(devel)":
		from = "version " + version
	default:
		from = "an unknown commit (go build notes it in a checkout of git, with -buildvcs=true)"
	}
	return fmt.Sprintf("built by %s, from %s%s", info.GoVersion, from, changed)
}
