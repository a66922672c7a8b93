// Command guest is the programs of the seeded world, built for wasip1 and run by package host.
package main

import (
	"godat/check/world/posts"
	"godat/check/world/program"
)

func main() { program.Main(posts.Named) }
