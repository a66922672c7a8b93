# Uses the library, and the page for Prometheus, from a module of its own beside a checkout, by
# the commands that the README gives for it.
set -euo pipefail
repo=$PWD
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
mapfile -t commands < <(grep '^go mod edit -require godat' README.md)
((${#commands[@]} == 2)) || { echo "the README has ${#commands[@]} commands for another module, and not two"; exit 1; }
ln -s "$repo" "$dir/godat"
mkdir "$dir/consumer"
cp .ci/consumer/consumer_test.go "$dir/consumer"
cd "$dir/consumer"
go mod init example.com/consumer
for step in library prometheus; do
  if [[ $step == prometheus ]]; then
    cp "$repo/.ci/consumer/prometheus_test.go" .
    echo "${commands[1]}"
    eval "${commands[1]}"
  else
    echo "${commands[0]}"
    eval "${commands[0]}"
  fi
  go vet ./...
  go test ./...
done
