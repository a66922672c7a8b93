// Package patch reads changes of code that are kept as patches, and gives them to the compiler as an
// overlay, so that no file of the tree changes.
package patch

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// ErrStale says that the old text of a hunk no longer occurs exactly once.
var ErrStale = errors.New("the old text must occur exactly once")

// Texts returns the changed text of each file, by absolute path.
func Texts(root string, changes []Change) (texts map[string]string, err error) {
	texts = make(map[string]string)
	for _, c := range changes {
		path := filepath.Join(root, filepath.FromSlash(c.File))
		text, seen := texts[path]
		if !seen {
			b, err := os.ReadFile(path)
			if err != nil {
				return nil, err
			}
			text = string(b)
		}
		if n := strings.Count(text, c.Old); n != 1 {
			return nil, fmt.Errorf("%s: %w, and occurs %d times:\n%s", c.File, ErrStale, n, c.Old)
		}
		texts[path] = strings.Replace(text, c.Old, c.New, 1)
	}
	return texts, nil
}

// Overlay writes the changed files and the compiler's overlay file into dir,
// and returns the overlay file's path.
func Overlay(root, dir string, changes []Change) (string, error) {
	texts, err := Texts(root, changes)
	if err != nil {
		return "", err
	}
	var desc struct{ Replace map[string]string }
	desc.Replace = make(map[string]string, len(texts))
	for path, text := range texts {
		file := filepath.Join(dir, strconv.Itoa(len(desc.Replace))+"_"+filepath.Base(path))
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			return "", err
		}
		desc.Replace[path] = file
	}
	b, err := json.Marshal(desc)
	if err != nil {
		return "", err
	}
	overlay := filepath.Join(dir, "overlay.json")
	return overlay, os.WriteFile(overlay, b, 0o600)
}
