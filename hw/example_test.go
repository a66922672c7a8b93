package hw_test

import (
	"errors"
	"fmt"
	"net"

	"godat/hw"
)

// memory is a provider that tells its version. It has no device yet.
type memory struct{}

func (memory) Name() string                          { return "memory" }
func (memory) Info() hw.Info                         { return hw.Info{Major: 2, Minor: 1, ThreadSafe: true} }
func (memory) Open(hw.OpenConfig) (hw.Device, error) { return nil, errors.ErrUnsupported }

// A program may demand a version. While it holds a provider, nobody can unregister it.
func ExampleAcquire() {
	driver := memory{} // its package registers it from init
	if err := hw.Register(driver); err != nil {
		fmt.Println(err)
		return
	}
	info := hw.InfoOf(driver)
	fmt.Printf("%s %d.%d\n", info.Name, info.Major, info.Minor)

	_, _, err := hw.Acquire(hw.Info{Name: "memory", Major: 3})
	fmt.Println("of version 3:", err)
	provider, release, err := hw.Acquire(hw.Info{Name: "memory"})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("found:", provider.Name())
	fmt.Println("in use:", errors.Is(hw.Unregister("memory"), hw.ErrProviderInUse))
	release()
	fmt.Println("removed:", hw.Unregister("memory") == nil)
	// Output:
	// memory 2.1
	// of version 3: provider not found (major version not found): provider "memory", version 3.0
	// found: memory
	// in use: true
	// removed: true
}

// A provider reports what its transport says of the end of a connection. Whoever knows
// the addresses adds them; a cause never changes.
func ExampleCause_Between() {
	reset := &hw.Cause{Layer: hw.LayerTCP, Text: "connection reset by peer"}
	here := &net.TCPAddr{IP: net.IPv4(10, 0, 0, 1), Port: 40000}
	there := &net.TCPAddr{IP: net.IPv4(10, 0, 0, 2), Port: 4444}
	fmt.Println(reset.Between(here, there))
	fmt.Println(reset)
	// Output:
	// TCP: connection reset by peer, found here (10.0.0.1:40000 to 10.0.0.2:4444)
	// TCP: connection reset by peer, found here
}
