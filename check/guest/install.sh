#!/usr/bin/env bash
# Installs the packages that the guest and the tests in it use, on Debian as root: the
# emulator and the tools that build the guest, the verbs libraries and their tools, the
# C programs that the tests talk to, the dissector of captures, and what tests a disk. It
# does not install the kernel and its headers: package guest unpacks them into its own
# cache.
set -euo pipefail
export DEBIAN_FRONTEND=noninteractive

guest=(qemu-system-x86 busybox-static kmod dpkg xz-utils make gcc-12 libc6-dev libelf1 libssl3 iproute2)
verbs=(rdma-core ibverbs-providers libibverbs1 librdmacm1 libibverbs-dev librdmacm-dev)
peers=(ibverbs-utils rdmacm-utils perftest dapl2-utils libdapl2 tshark)
block=(nvme-cli fio e2fsprogs xfsprogs util-linux)

apt-get update -qq
apt-get install -y -qq --no-install-recommends "${guest[@]}" "${verbs[@]}" "${peers[@]}" "${block[@]}" >/dev/null
