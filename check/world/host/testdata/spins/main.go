// Command spins reads the clock for ever.
package main

import "time"

func main() {
	for time.Now().Year() > 0 {
	}
}
