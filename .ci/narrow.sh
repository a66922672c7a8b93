# Systems whose words have 32 bits: the library builds for arm, everything is vetted for 386, and the library's
# tests run there, where a 64-bit atomic that is not aligned panics as on arm. No file is of arm or 386 alone.
# A kernel that doesn't run such programs runs those of arm, by qemu-arm-static.
set -euo pipefail
. .ci/packages.sh
export CGO_ENABLED=0 GOOS=linux
GOARCH=arm go build ./...
GOARCH=386 go vet "${packages[@]}"

# runs: whether this machine runs programs of GOARCH.
runs() {
  go test -c -o "$CI_TEMP/narrow.probe" ./internal/owner
  "$CI_TEMP/narrow.probe" >/dev/null 2>&1
}

# emulate has the kernel run ELF files of 32 bits (class 1) for ARM (machine 0x28) by
# qemu-arm-static.
emulate() {
  local misc=/proc/sys/fs/binfmt_misc magic mask
  [[ -e $misc/register ]] || mount -t binfmt_misc binfmt_misc $misc
  magic='\x7fELF\x01'$(printf '\\x00%.0s' {1..13})'\x28\x00'
  mask='\xff\xff\xff\xff\xff'$(printf '\\x00%.0s' {1..13})'\xff\xff'
  echo ":narrow-arm:M::$magic:$mask:$(command -v qemu-arm-static):F" >$misc/register
}

export GOARCH=386
without='^$'
at_once=$(nproc)
if ! runs; then
  export GOARCH=arm
  runs || { emulate && runs; } || { echo "neither this kernel nor qemu-arm-static runs 32-bit programs"; exit 1; }
  echo "as arm, emulated"
  at_once=1 # the emulator is slow, and tests wait for what other goroutines do
  # It counts mappings under a limit of the address space, which the emulator shares.
  without='^TestAllocTakesBackWhatFreedRegionsLeftWhenTheAddressSpaceIsShort$'
fi
mapfile -t packages < <(go list ./runtime/rpc ./internal/... ./hw/... ./mem ./evd ./ep/... ./runtime/... | awk '!seen[$0]++') # first what waits
bash .ci/again.sh narrow go test -short -vet=off -p "$at_once" -skip "$without" -- "${packages[@]}"
