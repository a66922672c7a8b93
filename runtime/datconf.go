package runtime

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"

	"godat/hw"
)

// registryFile is where DAT's static registry is, unless the environment
// variable DAT_OVERRIDE names another file.
const registryFile = "/etc/dat.conf"

// registryEntry is a line of DAT's static registry file: an interface adapter
// that a provider's library can open.
type registryEntry struct {
	Line                         int // in the file, from 1
	Name                         string
	Kernel                       bool // for kDAPL; the others are for uDAPL
	Major, Minor                 int  // the version of the DAT API
	ThreadSafe, Default          bool
	Library                      string // its path
	Provider                     string // its vendor, the first part of "id.major.minor"
	ProviderMajor, ProviderMinor int
	Params                       string // ia_params, without the quotes
	PlatformParams               string
}

// info is the entry as the registry lists it.
func (e registryEntry) info() hw.Info {
	return hw.Info{Name: e.Name, Major: e.Major, Minor: e.Minor, ThreadSafe: e.ThreadSafe}
}

// String is the entry as a line of the file.
func (e registryEntry) String() string {
	word := func(is bool, yes, no string) string {
		if is {
			return yes
		}
		return no
	}
	return fmt.Sprintf("%s %s%d.%d %s %s %s %s %s %s", quote(e.Name), word(e.Kernel, "k", "u"), e.Major, e.Minor,
		word(e.ThreadSafe, "threadsafe", "nonthreadsafe"), word(e.Default, "default", "nondefault"),
		quote(e.Library), quote(fmt.Sprintf("%s.%d.%d", e.Provider, e.ProviderMajor, e.ProviderMinor)),
		quote(e.Params), quote(e.PlatformParams))
}

func quote(s string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(s) + `"`
}

// staticRegistry reads DAT's static registry. That there is none is no error, unless DAT_OVERRIDE names it; a
// file that can't be read is INTERNAL_ERROR, and wrong lines are INVALID_PARAMETER.
func staticRegistry() ([]registryEntry, error) {
	const op = "runtime.Providers"
	path, named := os.Getenv("DAT_OVERRIDE"), "DAT_OVERRIDE="
	if path == "" {
		path, named = registryFile, ""
	}
	text, err := os.ReadFile(path)
	switch {
	case named == "" && errors.Is(err, os.ErrNotExist):
		return nil, nil
	case err != nil:
		return nil, hw.Errorf(op, hw.InternalError, hw.NoSubtype, "%s%s: the static registry can't be read: %w", named, path, err)
	}
	entries, err := parseRegistry(string(text))
	if err != nil {
		err = hw.Errorf(op, hw.InvalidParameter, hw.NoSubtype, "%s%s: %w", named, path, err)
	}
	return entries, err
}

// parseRegistry parses the text of a static registry file, as [Providers] says. Lines that break the rules are left
// out; the error gives the number of each, and what is wrong with it.
func parseRegistry(text string) ([]registryEntry, error) {
	var entries []registryEntry
	var errs []error
	for i, line := range strings.Split(text, "\n") {
		fields, err := splitFields(strings.TrimSuffix(line, "\r"))
		if err == nil && len(fields) == 0 {
			continue
		}
		e := registryEntry{Line: i + 1}
		if err == nil {
			err = e.parse(fields)
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("line %d: %w", i+1, err))
			continue
		}
		entries = append(entries, e)
	}
	return entries, errors.Join(errs...)
}

// splitFields splits a line into fields, and drops the comment.
func splitFields(line string) (fields []string, err error) {
	const blanks = " \t\v\f"
	for {
		line = strings.TrimLeft(line, blanks)
		switch {
		case line == "" || line[0] == '#':
			return fields, nil
		case line[0] == '"':
			var field string
			if field, line, err = cutQuoted(line[1:]); err != nil {
				return nil, fmt.Errorf("field %d: %w", len(fields)+1, err)
			}
			if line != "" && !strings.ContainsRune(blanks, rune(line[0])) {
				return nil, fmt.Errorf("field %d: %q follows the closing quote", len(fields)+1, line[:1])
			}
			fields = append(fields, field)
		default:
			end := strings.IndexAny(line, blanks)
			if end < 0 {
				end = len(line)
			}
			fields = append(fields, line[:end])
			line = line[end:]
		}
	}
}

// cutQuoted returns a quoted field and the rest behind its closing quote. s begins
// after the opening quote.
func cutQuoted(s string) (field, rest string, err error) {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		switch s[i] {
		case '"':
			return b.String(), s[i+1:], nil
		case '\\':
			if i++; i == len(s) {
				return "", "", errors.New("the line ends after a backslash")
			}
		}
		b.WriteByte(s[i])
	}
	return "", "", errors.New("no closing quote")
}

func (e *registryEntry) parse(fields []string) (err error) {
	const want = 8
	if len(fields) != want {
		return fmt.Errorf("%d fields, want %d", len(fields), want)
	}
	if e.Name = fields[0]; e.Name == "" || len(e.Name) > hw.MaxName {
		return fmt.Errorf("a name of %d bytes", len(e.Name))
	}
	api, version := fields[1], ""
	if api != "" {
		api, version = api[:1], api[1:]
	}
	if e.Kernel, err = either(api, "k", "u"); err != nil {
		return fmt.Errorf("API version %q: %w", fields[1], err)
	}
	if e.Major, e.Minor, err = parseVersion(version); err != nil {
		return fmt.Errorf("API version %q: %w", fields[1], err)
	}
	if e.ThreadSafe, err = either(fields[2], "threadsafe", "nonthreadsafe"); err != nil {
		return err
	}
	if e.Default, err = either(fields[3], "default", "nondefault"); err != nil {
		return err
	}
	if e.Library = fields[4]; e.Library == "" {
		return errors.New("no library")
	}
	id, version, ok := strings.Cut(fields[5], ".")
	if !ok || id == "" {
		return fmt.Errorf("provider version %q, want id.major.minor", fields[5])
	}
	if e.ProviderMajor, e.ProviderMinor, err = parseVersion(version); err != nil {
		return fmt.Errorf("provider version %q: %w", fields[5], err)
	}
	e.Provider, e.Params, e.PlatformParams = id, fields[6], fields[7]
	return nil
}

// either reports whether s is yes; it is an error if s is neither yes nor no.
func either(s, yes, no string) (bool, error) {
	if s != yes && s != no {
		return false, fmt.Errorf("%q, want %s or %s", s, yes, no)
	}
	return s == yes, nil
}

func parseVersion(s string) (major, minor int, err error) {
	a, b, _ := strings.Cut(s, ".")
	x, errX := strconv.ParseUint(a, 10, 31)
	y, errY := strconv.ParseUint(b, 10, 31)
	if errX != nil || errY != nil {
		return 0, 0, fmt.Errorf("%q, want major.minor", s)
	}
	return int(x), int(y), nil
}
