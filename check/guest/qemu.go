package guest

import (
	"fmt"
	"strconv"
	"strings"
)

// arguments returns QEMU's arguments. The processor is always emulated: where
// /dev/kvm exists, it may still hang.
//
// The processor does not claim fast moves of bytes (ERMS and FSRM): the emulator takes
// as long for a byte as for 8, and the kernel clears and copies memory in the units that
// the processor claims are fast. On a busy host the kernel would find that its timer does
// not work; no_timer_check stops it from checking.
//
// A fault of the kernel ends the machine, so that the program's output stops at the
// fault, and the kernel's report is the last of the console.
func (j *job) arguments(initrd, log string) []string {
	c := j.cfg
	args := []string{
		"-accel", "tcg,thread=multi", "-cpu", "max,erms=off,fsrm=off",
		"-smp", strconv.Itoa(c.CPUs), "-m", strconv.Itoa(c.Memory),
		"-nodefaults", "-no-user-config", "-display", "none", "-no-reboot",
		"-kernel", kernelImage(j.tree, j.kernel.name), "-initrd", initrd,
		"-append", "console=ttyS0 panic=-1 oops=panic quiet mitigations=off no_timer_check " + j.clockArguments(),
		"-serial", "file:" + escape(log), // the kernel's messages and init's
		"-serial", "stdio", // the program, and init's reports
		"-nic", nic(c.Tap, c.Forward),
	}
	args = append(args, share("host", "/", "on")...)
	for i, dir := range c.Share {
		args = append(args, share("share"+strconv.Itoa(i), dir, "off")...)
	}
	return args
}

// clockArguments returns the kernel's arguments about the clock, and the caller's. All
// emulated processors have the host's time-stamp counter. tsc=reliable says so, since each
// look at the clock would otherwise wait for a device, the HPET, and the counter's rate
// spares the kernel from finding it. A clock that turned out wrong so is that device.
func (j *job) clockArguments() string {
	if j.slowClock {
		return j.cfg.Kernel + " clocksource=hpet"
	}
	s := "tsc=reliable "
	if j.rate > 0 {
		s += "tsc_early_khz=" + strconv.Itoa(j.rate) + " "
	}
	return s + j.cfg.Kernel
}

func nic(tap string, forward []Forward) string {
	if tap != "" {
		return "tap,model=virtio-net-pci,script=no,downscript=no,ifname=" + tap
	}
	var b strings.Builder
	b.WriteString("user,model=virtio-net-pci")
	for _, f := range forward {
		fmt.Fprintf(&b, ",hostfwd=tcp:127.0.0.1:%d-:%d", f.Host, f.Guest)
	}
	return b.String()
}

// share offers a directory of the host. If other file systems are mounted inside
// the directory, QEMU needs multidevs=remap.
func share(tag, dir, readonly string) []string {
	return []string{
		"-fsdev", fmt.Sprintf("local,id=%s,path=%s,security_model=none,readonly=%s,multidevs=remap", tag, escape(dir), readonly),
		"-device", fmt.Sprintf("virtio-9p-pci,fsdev=%s,mount_tag=%s", tag, tag),
	}
}

// escape escapes a path for the value of a QEMU option.
func escape(s string) string { return strings.ReplaceAll(s, ",", ",,") }
