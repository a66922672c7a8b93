# The seeded world: its rooms, then programs by seed, each seed twice, and the same programs on real processors.
set -euo pipefail
cd check/world
# Its posts and its model have stages of their own.
go test -shuffle=on ./host ./model ./plant ./results
go test -race ./network ./lives
go test -race . -run '^TestTheProgramsRunOnRealProcessorsToo$' -args -world.seeds 3
go test -timeout 18m -v . -run '^TestASeedIsAHistoryAndAllIsRightInIt$' -args -world.seeds 5
go test -timeout 18m -v . -run '^TestASeedOfAVolumeIsAHistoryAndAllIsRightInIt$' -args -world.seeds 2
