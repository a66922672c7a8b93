# Says what of the public API breaks programs of the last release: of the newest tag before this commit, or of
# the commit that is named. Fails only within a major version from 1 on. A clone without tags has nothing to compare with.
set -euo pipefail
cd "$(dirname "$0")/.."
version=v0.0.0-20261113113407-e3970619a1a4 # of golang.org/x/exp
if (($# > 1)) || { (($# == 1)) && ! git rev-parse --quiet --verify "$1^{commit}" >/dev/null; }; then
  echo "apidiff: it takes one tag or commit that is here, or none, and got: $*" >&2
  exit 2
fi
base=${1:-$(git describe --tags --match 'v[0-9]*' --abbrev=0 2>/dev/null || true)}
if [[ -z $base ]]; then
  echo "apidiff: no tag of a release is here, so nothing to compare with"
  exit 0
fi
PATH="$PATH:$(go env GOPATH)/bin"
command -v apidiff >/dev/null || go install "golang.org/x/exp/cmd/apidiff@$version"
temp=$(mktemp -d)
trap 'rm -rf "$temp"' EXIT
git archive --output="$temp/base.tar" "$base"
mkdir "$temp/base"
tar -xf "$temp/base.tar" -C "$temp/base"
export GOWORK=off GOFLAGS=-buildvcs=false
exec 2> >(grep -v '^Ignoring internal package' >&2)
(cd "$temp/base" && apidiff -m -w "$temp/base.api" godat)
apidiff -m -w "$temp/now.api" godat
echo "apidiff: since $base:"
# What takes a door.Key is listed, too, though no program can call it.
apidiff -m "$temp/base.api" "$temp/now.api"
broken=$(apidiff -m -incompatible "$temp/base.api" "$temp/now.api")
if [[ -n $broken && $base =~ ^v[1-9] ]]; then
  echo "apidiff: that breaks programs of $base, and the next version has the same major number"
  exit 1
fi
