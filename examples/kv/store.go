package main

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

const (
	short   = 512     // bytes of the longest value in a message
	longest = 1 << 20 // bytes of the longest value
)

// answer serves a request, "put", KEY, VALUE or "get", KEY, whose parts are divided by
// zeros. The answer is a packed value, or "!" and the text of an error.
func answer(values map[string]string, window []byte, request string) string {
	switch f := strings.SplitN(request, "\x00", 3); {
	case len(f) == 3 && f[0] == "put":
		value, err := unpack(window, f[2])
		if err != nil {
			return "!" + err.Error()
		}
		values[f[1]] = value
		return pack(window, "stored")
	case len(f) == 2 && f[0] == "get":
		if value, found := values[f[1]]; found {
			return pack(window, value)
		}
		return "!no such key"
	}
	return "!usage: kv -addr host:port put key value | get key"
}

// request is the message that asks for what the arguments say. A long value goes into
// the memory; n is its length, and 0 without one.
func request(memory []byte, args []string) (text string, n int) {
	if len(args) == 3 {
		args = []string{args[0], args[1], pack(memory, args[2])}
		n = long(args[2])
	}
	return strings.Join(args, "\x00"), n
}

// pack is a value as a message has it: "=" and the value, or "#" and the length of a
// long one, which goes into the window.
func pack(window []byte, value string) string {
	if len(value) <= short {
		return "=" + value
	}
	copy(window, value)
	return "#" + strconv.Itoa(len(value))
}

// unpack is the value that was packed, or the error of an answer.
func unpack(window []byte, packed string) (string, error) {
	if n := long(packed); n > 0 && n <= len(window) {
		return string(window[:n]), nil
	}
	if text, refused := strings.CutPrefix(packed, "!"); refused {
		return "", errors.New("the server: " + text)
	}
	value, ok := strings.CutPrefix(packed, "=")
	if !ok {
		return "", errors.New("neither a value nor a length within the window")
	}
	return value, nil
}

// long is the length of a packed value that is in the window, and 0 for others.
func long(packed string) (n int) {
	_, _ = fmt.Sscanf(packed, "#%d", &n)
	return n
}
