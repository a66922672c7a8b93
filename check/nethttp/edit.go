package main

import (
	_ "embed"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// The edits of net/http and its tests: what calls package net calls the functions of
// testdata/dial.go.txt, which each of the packages gets.
var edits = []struct {
	old *regexp.Regexp
	new string
}{
	{regexp.MustCompile(`\bnet\.Listen\(`), "streamListen("},
	{regexp.MustCompile(`\bnet\.Dial\(`), "streamDial("},
	{regexp.MustCompile(`\btls\.Dial\(`), "streamTLSDial("},
	{regexp.MustCompile(`\bnet\.Dialer\b`), "streamDialer"},
	// The check for leaks looks when the adapter is closed, too.
	{regexp.MustCompile(`\bm\.Run\(\)`), "runAndClose(m)"},
	{regexp.MustCompile(`strings\.Contains\(stack, "testing\.Main\("\)`), "$0 || ofThePool(stack)"},
	// A stream has CloseWrite, and is another type.
	{regexp.MustCompile(`\.\(\*net\.TCPConn\)\.CloseWrite\(`), ".(interface{ CloseWrite() error }).CloseWrite("},
	// A server waits half a second between CloseWrite and Close, so that its client can write the
	// rest; in its tests it waits a nanosecond, since TCP takes a write after the peer's Close.
	// A stream's Write fails then.
	{regexp.MustCompile(`rstAvoidanceDelay = 1 \* time\.Nanosecond`), "rstAvoidanceDelay = 50 * time.Millisecond"},
}

// keepImports lets a file compile of which the edits have taken the last use of a package.
var keepImports = []struct{ imported, use string }{
	{"\n\t\"net\"\n", "\nvar _ net.Error\n"},
	{"\n\t\"crypto/tls\"\n", "\nvar _ tls.Config\n"},
}

//go:embed testdata/dial.go.txt
var dialText string

//go:embed testdata/open_test.go.txt
var openText string

// edit edits net/http, httptest and the tests of net/http.
func (t *tree) edit() error {
	var files []string
	for _, pattern := range []string{"*_test.go", "transport*.go", "server.go", "socks_bundle.go", "httptest/server.go"} {
		found, err := filepath.Glob(filepath.Join(t.from, "src", tested, pattern))
		if err != nil {
			return err
		}
		files = append(files, found...)
	}
	for _, file := range files {
		if err := t.editFile(file); err != nil {
			return err
		}
	}
	for file, pkg := range map[string]string{
		"stream.go": "http", "stream_test.go": "http_test", "httptest/stream.go": "httptest",
	} {
		if err := t.write(tested+"/"+file, dialing(pkg)); err != nil {
			return err
		}
	}
	return t.write(tested+"/open_test.go", openText)
}

// dialing returns the text of the functions that listen and dial, for a package.
func dialing(pkg string) string {
	text, own, _ := strings.Cut(dialText, "\n// ---- net/http alone\n")
	text = strings.Replace(text, "package PACKAGE", "package "+pkg, 1)
	if pkg == "http" {
		return strings.ReplaceAll(strings.Replace(text, "\n\tnethttp \"net/http\"", "", 1), "nethttp.", "") + own
	}
	return text
}

// editFile edits one file of Go's tree, into the copy.
func (t *tree) editFile(path string) error {
	b, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	text, changed := string(b), false
	for _, e := range edits {
		changed = changed || e.old.MatchString(text)
		text = e.old.ReplaceAllString(text, e.new)
	}
	if !changed {
		return nil
	}
	for _, k := range keepImports {
		if strings.Contains(text, k.imported) {
			text += k.use
		}
	}
	name, err := filepath.Rel(filepath.Join(t.from, "src"), path)
	if err != nil {
		return fmt.Errorf("edit %s: %w", path, err)
	}
	return t.write(name, text)
}
