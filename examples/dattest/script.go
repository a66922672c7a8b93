package main

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"strings"
)

// script reads the command line from a file if args are -f and the file's name;
// otherwise it returns args. The file has words, and comments, from a word that begins
// with # to the end of the line.
func script(args []string) ([]string, error) {
	if len(args) == 0 || !strings.HasPrefix(args[0], "-f") {
		return args, nil
	}
	name := args[0][2:]
	if name == "" && len(args) > 1 {
		name, args = args[1], args[1:]
	}
	if name == "" || len(args) > 1 {
		return nil, errors.New("-f FILE goes with nothing else")
	}
	f, err := os.Open(name)
	if err != nil {
		return nil, fmt.Errorf("the command line's file: %w", err)
	}
	defer f.Close()
	var words []string
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		for _, w := range strings.Fields(lines.Text()) {
			if strings.HasPrefix(w, "#") {
				break
			}
			words = append(words, w)
		}
	}
	return words, lines.Err()
}
