# The packages of the library and of the three modules beside it, for a script to source. The other
# modules of go.work are modules.sh's, peers.sh's and world.sh's, which do more with them.
packages=(./... ./bench/... ./check/... ./examples/...)

# Packages whose tests read pages and Go files, or start programs that the go command builds as it
# always does: neither the race detector nor a narrow system changes what they find. nocc.sh runs them, but
# for what needs git's history, which is of stage versions.
unchanged='/check/\(commands\|drawing\|versions\|words\)$'
