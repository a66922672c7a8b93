# The packages of the library and of the three modules beside it, for a script to source. The other
# modules of go.work are modules.sh's, peers.sh's and world.sh's, which do more with them.
packages=(./... ./bench/... ./check/... ./examples/...)
