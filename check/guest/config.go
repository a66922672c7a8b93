package guest

import (
	"cmp"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"
)

// The addresses of the guest and the host.
const (
	// Address is the guest's address on its only network, eth0.
	Address = "10.0.2.15"
	// Address6 is its IPv6 address there.
	Address6 = "fec0::15"
	// HostAddress is the address at which the guest reaches the host's loopback.
	HostAddress = "10.0.2.2"
)

// The bounds of a run.
const (
	// DefaultTimeout bounds a program whose Config sets no Timeout.
	DefaultTimeout = 10 * time.Minute
	// bootTimeout bounds the boot, before the program. It takes 10 s on a quiet
	// machine.
	bootTimeout = 5 * time.Minute
	// haltTimeout is how long the guest may take to power off after the program has
	// ended. A guest that takes longer is killed, which is no failure.
	haltTimeout = 5 * time.Second
)

// Config is the machine that a program runs on. The zero value is a machine without
// RDMA devices.
type Config struct {
	// Devices are the RDMA devices to make on eth0, by name: a name that begins
	// with rxe is a soft-RoCE device, one with siw a soft-iWARP one.
	Devices []string
	// Modules are further kernel modules to insert: dummy, veth, sch_netem and most
	// others of the distribution's kernel.
	Modules []string
	// Kernel is added to the kernel's command line. With "tsc=reliable
	// clocksource=tsc" a program reads the time without a system call, which
	// benchmarks need.
	Kernel string
	// Forward lets programs on the host reach TCP ports of the guest.
	Forward []Forward
	// Tap is a tap device of the host, or of the caller's network namespace, which
	// then is the guest's network instead of QEMU's user network. The caller gives it
	// the address HostAddress, and sets it up. There is nothing to forward.
	Tap string

	// Dir is the program's working directory; empty means the caller's.
	Dir string
	// Env is added to the program's environment, which holds PATH, HOME, TMPDIR
	// (writable), GODAT_GUEST_DEVICE, the first of Devices, and GODAT_GUEST_CLOCK. The
	// last is right if the guest's clock keeps the host's time within 2 %, and otherwise
	// wrong or unknown: then the times that the program sees mean nothing.
	Env []string
	// Share are directories of the host that the program may write to, under the
	// same path. The program's results leave the guest through them.
	Share []string

	// Output receives standard output and standard error of the program as they
	// come; nil discards them.
	Output io.Writer
	// Progress receives a sentence now and then while something slow is prepared;
	// nil discards them.
	Progress io.Writer
	// Complaints receives a sentence when the program runs on a machine that is not what
	// it should be: its clock does not keep time. nil means os.Stderr.
	Complaints io.Writer

	// Timeout bounds the program; 0 means DefaultTimeout.
	Timeout time.Duration
	// CPUs is the number of processors and Memory the memory in MiB; 0 means 2 and
	// 2048.
	CPUs, Memory int

	// Busy is how many processes compute beside the program. With some, a test
	// shows that the program does not depend on having the processors to itself.
	Busy int
}

// Forward forwards TCP port Host of the host's loopback to TCP port Guest of the
// guest.
type Forward struct{ Host, Guest int }

var deviceName = regexp.MustCompile(`^(rxe|siw)[0-9_][0-9a-z_]*$`)

// complete checks a configuration and sets the defaults.
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
	if c.Tap != "" && (len(c.Forward) > 0 || strings.ContainsAny(c.Tap, ",\n")) {
		return c, fmt.Errorf("guest: can't use the tap device %q with %d forwarded ports", c.Tap, len(c.Forward))
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
	c.Timeout, c.CPUs, c.Memory = cmp.Or(c.Timeout, DefaultTimeout), cmp.Or(c.CPUs, 2), cmp.Or(c.Memory, 2048)
	c.Output, c.Progress = cmp.Or(c.Output, io.Discard), cmp.Or(c.Progress, io.Discard)
	c.Complaints = cmp.Or(c.Complaints, io.Writer(os.Stderr))
	return c, nil
}

var envName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// modules lists the kernel modules to insert beside those that the guest boots
// with.
func (c *Config) modules() []string {
	var mods []string
	if len(c.Devices) > 0 {
		// rxe loads crc32 by name and fails with ENOENT without it.
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
