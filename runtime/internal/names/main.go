// Command names writes the file names.go of package runtime: the names by which a
// program reaches what other packages declare. go generate ./runtime runs it.
package main

import (
	"fmt"
	"os"
)

func main() {
	text, err := generate("..")
	if err == nil {
		err = os.WriteFile("names.go", text, 0o644)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "names:", err)
		os.Exit(1)
	}
}
