package lane

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"godat/bench/mode"
)

func TestCloseEndsATakeThatWaitsForAMessage(t *testing.T) {
	lanes := map[string]func(mode.Mode) (Lane, error){
		"messages": func(m mode.Mode) (Lane, error) {
			return NewEndpoints(Config{Provider: "loop", Mode: m, Size: 64, Depth: 4})
		},
		"round trips": func(m mode.Mode) (Lane, error) { return NewEcho(Config{Provider: "loop", Mode: m, Size: 64, Depth: 4}) },
		"writes": func(m mode.Mode) (Lane, error) {
			return NewWrites(Config{Provider: "loop", Mode: m, Size: 64, Depth: 4})
		},
		"setups":     func(mode.Mode) (Lane, error) { return NewSetups(Config{Provider: "loop", Depth: 4}) },
		"connection": func(mode.Mode) (Lane, error) { return NewTCP(Config{Size: 64, Depth: 4}) },
		"pipe":       func(mode.Mode) (Lane, error) { return NewPipe(Config{Size: 64, Depth: 4}), nil },
	}
	for name, open := range lanes {
		for _, m := range mode.All() {
			if name == "writes" && m.Name == mode.PerRequest.Name {
				continue // no write is outstanding whose flush would end it
			}
			t.Run(name+"/"+m.Name, func(t *testing.T) {
				l, err := open(m)
				require.NoError(t, err)
				took := make(chan struct{})
				ended := make(chan error, 1)
				go func() {
					ended <- l.Take(func(int) bool { close(took); return true })
				}()
				assert.NoError(t, l.Post(0))
				<-took
				require.NoError(t, l.Close())
				assert.Error(t, <-ended)
			})
		}
	}
}
