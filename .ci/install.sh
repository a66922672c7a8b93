# Installs by name what the stages use, whether it is there already or not.
set -euo pipefail
export DEBIAN_FRONTEND=noninteractive
apt-get update -qq
# gcc and libc6-dev: for the race detector, and to check what is built where cgo is on.
# valgrind and objdump (binutils): to count instructions. spin: for the models. prometheus: promtool. qemu-user-static: for 32-bit programs where the kernel runs none.
apt-get install -y -qq --no-install-recommends ca-certificates git make gcc libc6-dev valgrind binutils \
  qemu-user-static spin prometheus procps >/dev/null
make tools
gofumpt --version
golangci-lint version
go version
