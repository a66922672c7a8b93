# Says what of the public API breaks programs of the last release, whose commit CHANGELOG.md has, or of the commit that is
# named. Fails only within a major version from 1 on.
set -euo pipefail
cd "$(dirname "$0")/.."
version=v0.0.0-20261113113407-e3970619a1a4 # of golang.org/x/exp
if (($# > 1)) || { (($# == 1)) && ! git rev-parse --quiet --verify "$1^{commit}" >/dev/null; }; then
  echo "apidiff: it takes one tag or commit that is here, or none, and got: $*" >&2
  exit 2
fi
# The newest release that says its commit: "## VERSION, DATE", an empty line, "Commit HASH."
read -r version_of commit < <(awk '/^## v/ { v = $2 } v && /^Commit [0-9a-f]+\.$/ { sub(/\.$/, ""); print v, $2; exit }' CHANGELOG.md)
base=${1:-$commit}
if ! git rev-parse --quiet --verify "$base^{commit}" >/dev/null; then
  echo "apidiff: $base, the commit of ${version_of%,}, is not in this clone" >&2
  exit 1
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
if (($# == 0)); then base=${version_of%,}; fi
echo "apidiff: since $base:"
# What takes a door.Key is listed, too, though no program can call it.
apidiff -m "$temp/base.api" "$temp/now.api"
broken=$(apidiff -m -incompatible "$temp/base.api" "$temp/now.api")
if [[ -n $broken && $base =~ ^v[1-9] ]]; then
  echo "apidiff: that breaks programs of $base, and the next version has the same major number"
  exit 1
fi
