// Package guest runs a program on a machine that has RDMA devices: a QEMU guest with
// the distribution's own kernel and its soft-RoCE (rxe) and soft-iWARP (siw) devices.
// Tests use it on a machine without RDMA devices.
//
// The guest's root is the host's, read-only. So it has every program and file
// that the host has, under the same path: a test binary built on the host runs
// in the guest as it is. Both ends of a test can run in one guest, over [Address];
// peers on the host reach the guest through [Config.Forward], and the guest reaches
// the host's loopback as [HostAddress].
//
//	go run ./check/guest/cmd/guest -device rxe0 -- ibv_devinfo -d rxe0
//
// The package installs nothing. It finds the emulator and the other tools on the host
// (install.sh beside it installs them by name, on Debian), takes the kernel from
// the distribution's archive, builds siw from the distribution's source, and keeps both
// in the user's cache directory, godat-guest, by the kernel's version. While no guest
// runs, that directory may be deleted: the package makes again what is missing or stale.
// What the archive no longer has, or does not have yet, is taken at another version of the
// same binary interface, by newer package lists if need be; the tree's file packages has
// the versions.
//
// The guest's clock keeps the host's time within 2 %, or the package says that times mean
// nothing: see [Config.Env].
//
// The processor is emulated, so a program runs ten to a hundred times slower
// than on the host. Every wait is bounded: a guest that hangs is killed.
package guest
