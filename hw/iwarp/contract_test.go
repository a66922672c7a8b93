package iwarp

import (
	"net"
	"testing"

	"godat/hw"
	"godat/hw/hwtest"
	"godat/internal/owner"
)

// TestContract runs the contract suite over the provider in all its configurations; under
// the race detector, which is slow, only in those that take different paths, and with
// -short only in two that have TCP, a pipe, CRCs and markers between them.
func TestContract(t *testing.T) {
	tcp, pipe := New(Config{}), New((&pipes{}).config())
	for _, c := range []struct {
		name     string
		provider hw.Provider
		host     string
		params   map[string]string
		polling  int // consumers
		runs     bool
		short    bool
		slow     bool
	}{
		{name: "with CRCs", provider: tcp, host: "127.0.0.1", short: true},
		{name: "with CRCs, directly", provider: tcp, host: "127.0.0.1", runs: true, short: true},
		{name: "with CRCs, polled", provider: tcp, host: "127.0.0.1", polling: 2, short: true},
		{name: "without CRCs", provider: tcp, host: "127.0.0.1", params: map[string]string{"crc": "false"}},
		{name: "without CRCs, polled", provider: tcp, host: "127.0.0.1", polling: 1, params: map[string]string{"crc": "false"}},
		{name: "without CRCs, directly", provider: tcp, host: "127.0.0.1", runs: true, params: map[string]string{"crc": "false"}, slow: true},
		{name: "with markers", provider: tcp, host: "127.0.0.1", params: map[string]string{"markers": "true"}},
		{name: "a pipe", provider: pipe, host: "here"},
		{name: "IPv6", provider: tcp, host: "::1", slow: true},
		{name: "a pipe, with markers", provider: pipe, host: "here", params: map[string]string{"markers": "true"}, short: true, slow: true},
		{name: "small FPDUs", provider: tcp, host: "127.0.0.1", params: map[string]string{"fpdu": "256"}, slow: true},
		{name: "small buffers", provider: tcp, host: "127.0.0.1", params: map[string]string{"buffer": "65536"}},
		{name: "with the promise of an RTR", provider: tcp, host: "127.0.0.1", params: map[string]string{"peer2peer": "true"}, slow: true},
		{name: "without RTR", provider: tcp, host: "127.0.0.1", params: map[string]string{"extensions": "false", "grace": "15ms"}, slow: true},
		{name: "most private data", provider: tcp, host: "127.0.0.1", params: map[string]string{"private": "508"}, slow: true},
	} {
		if testing.Short() && !c.short || c.slow && owner.Enabled || c.host == "::1" && !hasIPv6() {
			continue
		}
		t.Run(c.name, func(t *testing.T) {
			hwtest.TestProvider(t, hwtest.Config{
				Provider: c.provider, Devices: [2]string{c.host, c.host}, Params: c.params, Consumers: c.polling, Runs: c.runs,
				Unknown: "no such host!", Gaps: hwtest.EarlyCompletion,
			})
		})
	}
}

func hasIPv6() bool {
	ln, err := net.Listen("tcp", "[::1]:0")
	if err != nil {
		return false
	}
	_ = ln.Close()
	return true
}
