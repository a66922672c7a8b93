package host

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestTheModelOfTheProcessorIsFound(t *testing.T) {
	assert.Equal(t, "A Processor @ 2 GHz", cpuModel("processor\t: 0\nmodel name\t: A Processor @ 2 GHz\nmodel name\t: another\n"))
	assert.Equal(t, unknown, cpuModel("processor : 0\n"))
}

func TestALineNamesTheMachineAndTheProgram(t *testing.T) {
	l := Describe()
	assert.Positive(t, l.Cores)
	assert.Contains(t, l.String(), l.Go)
	assert.NotEmpty(t, l.Commit)
}

func TestALineNamesTheCongestionControlWhereTheSystemSaysIt(t *testing.T) {
	assert.Contains(t, Line{Governor: "performance", Congestion: "cubic", Go: "go1"}.String(), "governor performance, TCP cubic, go1,")
	assert.Contains(t, Line{Governor: "performance", Go: "go1"}.String(), "governor performance, go1,")
}
