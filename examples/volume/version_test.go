package main

import (
	"runtime/debug"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestTheVersionNamesTheCommitOrSaysWhyItDoesNot(t *testing.T) {
	revision := debug.BuildSetting{Key: "vcs.revision", Value: "abc"}
	changed := debug.BuildSetting{Key: "vcs.modified", Value: "true"}
	for want, info := range map[string]debug.BuildInfo{
		"built by go1, from commit abc":                   {Settings: []debug.BuildSetting{revision, {Key: "vcs.modified", Value: "false"}}},
		"built by go1, from commit abc and changes":       {Settings: []debug.BuildSetting{changed, revision}, Main: debug.Module{Version: "v1"}},
		"built by go1, from version v0.0.0-1-abc":         {Main: debug.Module{Version: "v0.0.0-1-abc"}},
		"built by go1, from an unknown commit (go build ": {Main: debug.Module{Version: "(devel)"}},
	} {
		info.GoVersion = "go1"
		assert.Contains(t, built(&info), want)
	}
}
