// Command guest is the program of a volume of the seeded world, built for wasip1 and run by package host.
package main

import (
	"godat/check/world/nodes"
	"godat/check/world/program"
)

func main() { program.Main(nodes.Named) }
