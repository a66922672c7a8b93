// Package page writes files that people keep: pages of figures, the lines of other pages
// that quote them, and logs.
package page

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
)

// Write makes the file of what write writes. If anything fails, such as a disk that is full,
// the file keeps what it had. What is no file, such as a pipe, is written to directly. Two
// calls for one file at a time leave what one of them wrote.
func Write(name string, write func(io.Writer) error) error {
	mode := os.FileMode(0o644)
	if info, err := os.Stat(name); err == nil {
		if !info.Mode().IsRegular() {
			return writeInto(name, write)
		}
		mode = info.Mode().Perm()
	}
	target, err := filepath.EvalSymlinks(name)
	if err != nil { // there is none yet
		target = name
	}
	f, err := os.CreateTemp(filepath.Dir(target), "."+filepath.Base(target)+".*")
	if err != nil {
		return fmt.Errorf("%s can't be written: %w", name, err)
	}
	err = write(f)
	if err == nil {
		err = errors.Join(f.Chmod(mode), f.Sync())
	}
	err = errors.Join(err, f.Close())
	if err == nil {
		err = os.Rename(f.Name(), target)
	}
	if err != nil {
		return errors.Join(fmt.Errorf("%s stays as it was: %w", name, err), os.Remove(f.Name()))
	}
	return nil
}

// writeInto writes to what there is.
func writeInto(name string, write func(io.Writer) error) error {
	f, err := os.OpenFile(name, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	return errors.Join(write(f), f.Close())
}

// WriteText is Write of a text.
func WriteText(name, text string) error {
	return Write(name, func(w io.Writer) error {
		_, err := io.WriteString(w, text)
		return err
	})
}

// Writable is an error if no page could be written in a folder.
func Writable(folder string) error {
	if info, err := os.Stat(folder); err != nil || !info.IsDir() {
		return errors.Join(fmt.Errorf("%s is no folder for the page", folder), err)
	}
	f, err := os.CreateTemp(folder, ".page.*")
	if err != nil {
		return fmt.Errorf("nothing can be written in %s: %w", folder, err)
	}
	return errors.Join(f.Close(), os.Remove(f.Name()))
}

// Marks are the lines around a part of a page. Both are comments, which no reader sees. Pairs
// of marks may have the same End.
type Marks struct{ Begin, End string }

// ErrNoMarks says that a page has not the lines that begin a part.
var ErrNoMarks = errors.New("no marks")

// comment begins each mark. What was measured has none.
const comment = "<!--"

// Cut returns what is before the part, in it and behind it, marks left out. A page on which a
// mark is missing, or is there twice, is an error, since a part would be taken for another one.
func (m Marks) Cut(text string) (before, part, after string, err error) {
	before, rest, begins := strings.Cut(text, m.Begin)
	if !begins {
		return "", "", "", fmt.Errorf("%w: there are no lines %q and %q", ErrNoMarks, strings.TrimSpace(m.Begin), strings.TrimSpace(m.End))
	}
	if strings.Contains(rest, m.Begin) {
		return "", "", "", fmt.Errorf("the line %q is there twice: remove one part", strings.TrimSpace(m.Begin))
	}
	part, after, ends := strings.Cut(rest, m.End)
	if !ends || strings.Contains(part, comment) {
		return "", "", "", fmt.Errorf("the line %q has no line %q behind it: put it where the part ends", strings.TrimSpace(m.Begin), strings.TrimSpace(m.End))
	}
	return before, part, after, nil
}

// Check is an error if the file's part could not be replaced.
func (m Marks) Check(name string) error {
	_, err := m.replaced(name, "")
	return err
}

// Replace replaces the part of the file. If it fails, the file stays as it is.
func (m Marks) Replace(name, lines string) error {
	text, err := m.replaced(name, lines)
	if err != nil {
		return err
	}
	return WriteText(name, text)
}

// Quote is Replace of a page that quotes the lines. A page without marks, or none, quotes nothing.
func (m Marks) Quote(name, lines string) error { return quoting(m.Replace(name, lines)) }

// Quotable is an error if Quote could not replace the part.
func (m Marks) Quotable(name string) error { return quoting(m.Check(name)) }

func quoting(err error) error {
	if errors.Is(err, ErrNoMarks) || errors.Is(err, os.ErrNotExist) {
		return nil
	}
	return err
}

// replaced is the file's text with another part.
func (m Marks) replaced(name, lines string) (string, error) {
	text, err := os.ReadFile(name)
	if err != nil {
		return "", err
	}
	before, _, after, err := m.Cut(string(text))
	if err != nil {
		return "", fmt.Errorf("%s: %w", name, err)
	}
	return before + m.Begin + lines + m.End + after, nil
}
