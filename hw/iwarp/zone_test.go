package iwarp

import (
	"net"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestAListenersAddressHasTheZoneThatWasGiven(t *testing.T) {
	at := &net.TCPAddr{IP: net.ParseIP("fe80::1"), Port: 4444} // as a kernel that tells no zone says it
	for host, want := range map[string]string{
		"fe80::1%lo":   "[fe80::1%lo]:4444",
		"fe80::1":      "[fe80::1]:4444",
		"fe80::2%lo":   "[fe80::1]:4444",
		"a.name.of.it": "[fe80::1]:4444",
		"":             "[fe80::1]:4444",
	} {
		assert.Equal(t, want, zoned(at, host).String(), host)
	}
	at.Zone = "eth0"
	assert.Equal(t, "[fe80::1%eth0]:4444", zoned(at, "fe80::1%2").String(), "the kernel's own word")
	wide := &net.TCPAddr{IP: net.ParseIP("10.0.0.1"), Port: 4444}
	assert.Equal(t, "10.0.0.1:4444", zoned(wide, "10.0.0.1").String())
}
