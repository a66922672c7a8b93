package guest

import (
	"cmp"
	"errors"
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

var (
	deviceName = regexp.MustCompile(`^(rxe|siw)[0-9_][0-9a-z_]*$`)
	moduleName = regexp.MustCompile(`^[A-Za-z0-9_-]+$`)
	envName    = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)
)

// ErrConfig says that there can be no guest with a configuration.
var ErrConfig = errors.New("the configuration")

// complete checks a configuration and sets the defaults.
func (c Config) complete() (Config, error) {
	for _, check := range []func() error{c.checkNames, c.checkNetwork, c.checkNumbers, c.completeDirs} {
		if err := check(); err != nil {
			return c, fmt.Errorf("guest: %w: %w", ErrConfig, err)
		}
	}
	c.Timeout, c.CPUs, c.Memory = cmp.Or(c.Timeout, DefaultTimeout), cmp.Or(c.CPUs, 2), cmp.Or(c.Memory, 2048)
	c.Output, c.Progress = cmp.Or(c.Output, io.Discard), cmp.Or(c.Progress, io.Discard)
	c.Complaints = cmp.Or(c.Complaints, io.Writer(os.Stderr))
	return c, nil
}

// checkNames checks what becomes words of init's, or of the kernel's command line.
func (c *Config) checkNames() error {
	for i, d := range c.Devices {
		if !deviceName.MatchString(d) {
			return fmt.Errorf("device %q is neither an rxe nor a siw", d)
		}
		if slices.Contains(c.Devices[:i], d) {
			return fmt.Errorf("device %s twice", d)
		}
	}
	for _, m := range c.Modules {
		if !moduleName.MatchString(m) {
			return fmt.Errorf("%q is no name of a module", m)
		}
	}
	for _, e := range c.Env {
		if name, _, ok := strings.Cut(e, "="); !ok || !envName.MatchString(name) {
			return fmt.Errorf("%q is no setting of the environment", e)
		}
	}
	if strings.ContainsAny(c.Kernel, "\n\x00") {
		return fmt.Errorf("%q is no line for the kernel", c.Kernel)
	}
	return nil
}

func (c *Config) checkNetwork() error {
	taken := map[int]bool{}
	for _, f := range c.Forward {
		if f.Host < 1 || f.Host > 65535 || f.Guest < 1 || f.Guest > 65535 {
			return fmt.Errorf("can't forward port %d to %d", f.Host, f.Guest)
		}
		if taken[f.Host] {
			return fmt.Errorf("can't forward port %d of the host twice", f.Host)
		}
		taken[f.Host] = true
	}
	if c.Tap != "" && (len(c.Forward) > 0 || strings.ContainsAny(c.Tap, ",\n")) {
		return fmt.Errorf("can't use the tap device %q with %d forwarded ports", c.Tap, len(c.Forward))
	}
	return nil
}

// The kernel does not boot with less memory, nor the emulator with more processors.
const (
	leastMemory = 256
	mostCPUs    = 255
	mostBusy    = 1000
)

func (c *Config) checkNumbers() error {
	switch {
	case c.Timeout < 0:
		return fmt.Errorf("a limit of %v: more than 0", c.Timeout)
	case c.Memory != 0 && c.Memory < leastMemory:
		return fmt.Errorf("%d MiB of memory: at least %d", c.Memory, leastMemory)
	case c.CPUs < 0 || c.CPUs > mostCPUs:
		return fmt.Errorf("%d processors: from 1 to %d", c.CPUs, mostCPUs)
	case c.Busy < 0 || c.Busy > mostBusy:
		return fmt.Errorf("%d busy processes: up to %d", c.Busy, mostBusy)
	}
	return nil
}

// completeDirs makes the directories' names absolute.
func (c *Config) completeDirs() (err error) {
	if c.Dir, err = filepath.Abs(c.Dir); err != nil {
		return fmt.Errorf("working directory: %w", err)
	}
	if info, err := os.Stat(c.Dir); err != nil || !info.IsDir() {
		return fmt.Errorf("%s is no directory to work in", c.Dir)
	}
	c.Share = slices.Clone(c.Share)
	for i, s := range c.Share {
		if c.Share[i], err = filepath.Abs(s); err != nil {
			return fmt.Errorf("shared directory: %w", err)
		}
		if info, err := os.Stat(c.Share[i]); s == "" || err != nil || !info.IsDir() {
			return fmt.Errorf("%q is no directory to share", s)
		}
		if strings.ContainsAny(c.Share[i], ",\n") {
			return fmt.Errorf("can't share %q: a comma or line break in the name", s)
		}
	}
	return nil
}

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
