package main

import (
	"bytes"
	"testing"

	"github.com/alecthomas/kong"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// helpOf is what a command says of itself.
func helpOf(t *testing.T, command string) string {
	var out bytes.Buffer
	ended := "the help is shown"
	parser, err := kong.New(&options{}, kong.Name("volume"), kong.Writers(&out, &out), kong.Exit(func(int) { panic(ended) }))
	require.NoError(t, err)
	require.PanicsWithValue(t, ended, func() { _, _ = parser.Parse([]string{command, "--help"}) })
	return out.String()
}

func TestTheHelpOfACommandHasItsStatusesAndNoOptionsOfOthers(t *testing.T) {
	for _, command := range []string{"create", "serve", "status", "add", "remove", "replace", "transfer", "recover", "check"} {
		help := helpOf(t, command)
		assert.Contains(t, help, "Exit status: 0 ", command)
		assert.Equal(t, command == "serve", bytes.Contains([]byte(help), []byte("--traces=")), command)
		assert.Equal(t, command != "create" && command != "recover", bytes.Contains([]byte(help), []byte("--tls-cert=")), command)
	}
}
