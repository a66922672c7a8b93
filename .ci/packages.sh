# The packages of the library and of the three modules beside it, for a script to source, and of the
# modules that carry much. Those of bench/peers and check/world are peers.sh's and world.sh's, which
# do more with them.
packages=(./... ./bench/... ./check/... ./examples/...)
carriers=(./examples/raftgodat/... ./examples/volume/... ./runtime/inspect/prometheus/...)

# Packages whose tests read pages and Go files, or start programs that the go command builds as it
# always does: neither the race detector nor a narrow system changes what they find. nocc.sh runs them, but
# for what needs git's history, which is of stage versions.
unchanged='/check/\(commands\|drawing\|versions\|words\)$'
