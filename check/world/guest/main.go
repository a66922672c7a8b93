// Command guest is the programs of the seeded world, built for wasip1 and run by package host.
package main

import (
	"godat/check/world/driver"
	"godat/check/world/program"
)

func main() { program.Main(driver.Named) }
