# The seeded world: each program by a seed, twice, by turns over iwarp or over the other providers, or with no TURN over all,
# and the same programs on real processors. make world runs more of them. Its rooms are nocc.sh's and race.sh's; its posts
# and its model have stages of their own.
set -euo pipefail
over=(iwarp loop,sim)
provider=${TURN:+${over[TURN % 2]}}
bash .ci/again.sh processors go test -race -vet=off -run 'RealProcessorsToo$' -- ./check/world -args -world.seeds 1
bash .ci/again.sh world go test -vet=off -timeout 40m -run '^TestASeed.*IsAHistoryAndAllIsRightInIt$' -- ./check/world -args -world.seeds 1 -world.provider "${provider:-iwarp,loop,sim}"
