# The seeded world: its rooms, then programs by seed, each seed twice, and the same programs on real processors.
set -euo pipefail
cd check/world
golangci-lint run ./...
go test -shuffle=on ./driver ./host ./model ./network ./plant ./posts ./results
go test -race ./network ./lives
go test -race . -run '^TestTheProgramsRunOnRealProcessorsToo$'
go test -v . -run '^TestASeedIsAHistoryAndAllIsRightInIt$' -args -world.seeds 5
go test -v . -run '^TestASeedOfAVolumeIsAHistoryAndAllIsRightInIt$' -args -world.seeds 2
