// Command waits sleeps for ever.
package main

import "time"

func main() {
	for {
		time.Sleep(time.Minute)
	}
}
