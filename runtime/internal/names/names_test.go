package main

import (
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestTheNamesAreCurrent(t *testing.T) {
	want, err := generate("../../..")
	require.NoError(t, err)
	have, err := os.ReadFile("../../names.go")
	require.NoError(t, err)
	assert.True(t, string(want) == string(have), "run go generate ./runtime")
}

func TestANameThatIsGoneIsAnError(t *testing.T) {
	defer func(names []string) { table[0].names = names }(table[0].names)
	table[0].names = append([]string{"Nothing"}, table[0].names...)
	_, err := generate("../../..")
	assert.ErrorContains(t, err, "package ep has no Nothing")
}
