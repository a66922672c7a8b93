// Command repeats prints what could differ from run to run: times, the order of a map, of a select, of
// goroutines, and random numbers.
package main

import (
	crand "crypto/rand"
	"fmt"
	"math/rand/v2"
	"os"
	"time"
)

func main() {
	fmt.Println(os.Args[1:], time.Now(), rand.Uint64(), crand.Text())
	all := make(map[int]bool)
	said := make(chan int)
	for i := range 20 {
		all[i] = true
		go func() {
			time.Sleep(time.Duration(rand.IntN(1000)) * time.Millisecond)
			said <- i
		}()
	}
	for i := range all {
		fmt.Print(i, " ")
	}
	for range 20 {
		fmt.Print(<-said, " ")
	}
	fmt.Println(time.Now())
	if len(os.Args) > 2 {
		os.Exit(3)
	}
}
