# What the README tells a newcomer to do, by fresh.sh: its first commands, then each command of
# any page that needs nothing but this machine, and the flags of all others. The commands for
# another module, word by word as the README has them, are consumer.sh's.
set -euo pipefail
first=$(grep -m 1 '^go run ' README.md) || { echo "README.md has no line that begins with go run" && exit 1; }
echo "$first"
$first
go test -count=1 -timeout 13m ./check/commands -args -commands.run
