package guest

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"
)

// Where the two machines find each other.
const (
	// Address is the guest's address on its only network, eth0.
	Address = "10.0.2.15"
	// Address6 is its IPv6 address there.
	Address6 = "fec0::15"
	// HostAddress is where the guest finds the host's loopback.
	HostAddress = "10.0.2.2"
)

// The bounds of a run.
const (
	// DefaultTimeout bounds a program for which no other bound was set.
	DefaultTimeout = 10 * time.Minute
	// bootTimeout bounds what comes before the program. It takes 10 s on a quiet
	// machine.
	bootTimeout = 5 * time.Minute
	// haltTimeout is how long the guest may take to power off when the program
	// has ended. Nothing depends on it.
	haltTimeout = 5 * time.Second
)

// Config says which machine to run a program on. Its zero value is one without
// RDMA devices.
type Config struct {
	// Devices are the RDMA devices to make on eth0, by name: a name that begins
	// with rxe is a soft-RoCE device, one with siw a soft-iWARP one.
	Devices []string
	// Modules are kernel modules to insert besides those of the devices: dummy,
	// veth, sch_netem and most others of the kernel's.
	Modules []string
	// Kernel is added to the kernel's command line. With "tsc=reliable
	// clocksource=tsc" time is read without a system call, which benchmarks want; on
	// a busy host that clock may be set up wrong.
	Kernel string
	// Forward lets programs on the host reach TCP ports of the guest.
	Forward []Forward

	// Dir is the program's working directory; empty means the caller's.
	Dir string
	// Env is added to the program's environment, which holds PATH, HOME, TMPDIR
	// (writable) and GODAT_GUEST_DEVICE, the first of Devices.
	Env []string
	// Share are directories of the host that the program may write to, under the
	// same path: results leave the guest through them.
	Share []string

	// Output takes what the program writes, both streams, as it comes; nil drops
	// it.
	Output io.Writer
	// Progress takes a sentence now and then while something slow is prepared;
	// nil drops it.
	Progress io.Writer

	// Timeout bounds the program; 0 means DefaultTimeout.
	Timeout time.Duration
	// CPUs and Memory (MiB) are the machine's; 0 means 2 and 2048.
	CPUs, Memory int

	// Busy is how many processes compute beside the program, to see that it does not
	// depend on having the processors for itself.
	Busy int
}

// Forward is a TCP port of the host's loopback that leads to one of the guest's.
type Forward struct{ Host, Guest int }

var deviceName = regexp.MustCompile(`^(rxe|siw)[0-9_][0-9a-z_]*$`)

// complete checks a configuration and fills in what it leaves out.
func (c Config) complete() (Config, error) {
	for _, d := range c.Devices {
		if !deviceName.MatchString(d) {
			return c, fmt.Errorf("guest: device %q is neither an rxe nor a siw", d)
		}
	}
	for _, f := range c.Forward {
		if f.Host < 1 || f.Host > 65535 || f.Guest < 1 || f.Guest > 65535 {
			return c, fmt.Errorf("guest: can't forward port %d to %d", f.Host, f.Guest)
		}
	}
	dir, err := filepath.Abs(c.Dir)
	if err != nil {
		return c, fmt.Errorf("guest: working directory: %w", err)
	}
	c.Dir = dir
	c.Share = slices.Clone(c.Share)
	for i, s := range c.Share {
		if c.Share[i], err = filepath.Abs(s); err != nil {
			return c, fmt.Errorf("guest: shared directory: %w", err)
		}
		if info, err := os.Stat(c.Share[i]); err != nil || !info.IsDir() {
			return c, fmt.Errorf("guest: %s is no directory to share", s)
		}
		if strings.ContainsAny(c.Share[i], ",\n") {
			return c, fmt.Errorf("guest: can't share %q: a comma or line break in the name", s)
		}
	}
	for _, e := range c.Env {
		if name, _, ok := strings.Cut(e, "="); !ok || !envName.MatchString(name) {
			return c, fmt.Errorf("guest: %q is no setting of the environment", e)
		}
	}
	if c.Timeout == 0 {
		c.Timeout = DefaultTimeout
	}
	if c.CPUs == 0 {
		c.CPUs = 2
	}
	if c.Memory == 0 {
		c.Memory = 2048
	}
	if c.Output == nil {
		c.Output = io.Discard
	}
	if c.Progress == nil {
		c.Progress = io.Discard
	}
	return c, nil
}

var envName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// modules lists what the devices need beyond what the guest boots with.
func (c *Config) modules() []string {
	var mods []string
	if len(c.Devices) > 0 {
		// rxe asks for crc32 by name, and says ENOENT without it.
		mods = append(mods, "crc32_generic", "crc32c_generic", "ib_uverbs", "rdma_ucm", "ib_umad")
	}
	for _, d := range c.Devices {
		if strings.HasPrefix(d, "rxe") {
			mods = append(mods, "rdma_rxe")
		} else {
			mods = append(mods, "siw")
		}
	}
	return append(append(mods, "virtio_net"), c.Modules...)
}
