// Package guest runs a program on a machine that has RDMA devices, made of a
// QEMU guest with the distribution's own kernel: soft-RoCE (rxe) and soft-iWARP
// (siw), for tests against real verbs devices on a machine that has none.
//
// The guest's root is the host's, read-only. So it has every program and file
// that the host has, under the same path: a test binary built on the host runs
// in it as it is. Both ends of a test can run in one guest, over [Address];
// peers on the host reach it through [Config.Forward], and it reaches the host's
// loopback as [HostAddress].
//
//	go run ./check/guest/cmd/guest -device rxe0 -- ibv_devinfo -d rxe0
//
// Nothing is installed. The package finds the emulator and the rest on the host
// (install.sh beside it installs them by name, on Debian), takes the kernel from
// the distribution's archive, builds siw from the distribution's source of the
// same version, and keeps both in the user's cache directory, godat-guest, by
// version. That directory may be deleted at any time when no guest runs; what is
// missing or stale is made again.
//
// The processor is emulated, so a program runs ten to a hundred times slower
// than on the host. Every wait is bounded: a guest that hangs is killed.
package guest
