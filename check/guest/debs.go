package guest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// lists are package lists of the distribution's archives: the options of apt-get and
// apt-cache that choose them. Without options they are the host's.
type lists []string

// updateTimeout bounds the fetching of package lists.
const updateTimeout = 3 * time.Minute

// newLists fetches today's package lists into dir and leaves the host's alone, so it
// needs no privilege. An archive that does not answer has no list: the error says so, and
// the lists of the others are good.
func newLists(ctx context.Context, dir string) (lists, error) {
	for _, d := range []string{"lists/partial", "cache/archives/partial"} {
		if err := os.MkdirAll(filepath.Join(dir, d), 0o755); err != nil {
			return nil, fmt.Errorf("guest: package lists: %w", err)
		}
	}
	l := lists{
		"-o", "Dir::State::Lists=" + filepath.Join(dir, "lists"), "-o", "Dir::Cache=" + filepath.Join(dir, "cache"),
		"-o", "APT::Sandbox::User=root", // a user of its own could not write to dir
	}
	ctx, cancel := context.WithTimeout(ctx, updateTimeout)
	defer cancel()
	_, err := aptGet.output(ctx, "", l.with("-qq", "-o", "Acquire::Retries=3", "update")...)
	return l, err
}

func (l lists) with(args ...string) []string { return slices.Concat(l, args) }

// release is a version of a package that the lists have.
type release struct {
	version string
	depends []string // alternatives and versions left out
}

// releases returns the versions of a package that the lists have, the newest first. It
// returns none if the lists don't have the package.
func (l lists) releases(ctx context.Context, pkg string) ([]release, error) {
	out, err := aptCache.output(ctx, "", l.with("show", "--all-versions", pkg)...)
	if _, ran := errors.AsType[*complaintError](err); ran && ctx.Err() == nil {
		return nil, nil // it ends with a status when there is no such package
	}
	return parseReleases(out), err
}

// preferred returns the version of a package that the package manager would install, or
// "".
func (l lists) preferred(ctx context.Context, pkg string) string {
	out, err := aptCache.output(ctx, "", l.with("show", "--no-all-versions", pkg)...)
	if all := parseReleases(out); err == nil && len(all) > 0 {
		return all[0].version
	}
	return ""
}

func parseReleases(out []byte) (all []release) {
	var r release
	for line := range strings.Lines(string(out) + "\n") {
		line = strings.TrimRight(line, "\n")
		if line == "" && r.version != "" && !slices.ContainsFunc(all, func(o release) bool { return o.version == r.version }) {
			all = append(all, r)
		}
		name, value, _ := strings.Cut(line, ": ")
		switch name {
		case "":
			r = release{}
		case "Version":
			r.version = value
		case "Depends":
			for d := range strings.SplitSeq(value, ",") {
				first, _, _ := strings.Cut(strings.TrimSpace(d), " ")
				r.depends = append(r.depends, first)
			}
		}
	}
	return all
}

// missingError says of a package that no version of it could be had.
type missingError struct {
	pkg   string
	tried []string // each version, with the reason
}

func (e *missingError) Error() string {
	if len(e.tried) == 0 {
		return e.pkg + " is in no package list"
	}
	return e.pkg + " can't be had (tried " + strings.Join(e.tried, "; ") + ")"
}

// noSpace is how programs say that a disk is full, which no newer list helps.
const noSpace = "No space left on device"

// download fetches a package into dir, without installing it, and returns the path of its
// file and its version: the first of the versions that can be had.
func (l lists) download(ctx context.Context, dir, pkg string, versions []string) (file, version string, err error) {
	missing := &missingError{pkg: pkg}
	for _, v := range versions {
		_, err := aptGet.output(ctx, dir, l.with("-qq", "-o", "Acquire::Retries=3", "download", pkg+"="+v)...)
		if ctx.Err() != nil {
			return "", "", fmt.Errorf("guest: %w", context.Cause(ctx))
		}
		found, globErr := filepath.Glob(filepath.Join(dir, pkg+"_*.deb"))
		if err != nil {
			if why := reason(err); strings.Contains(why, noSpace) {
				return "", "", fmt.Errorf("guest: %s does not fit into %s: make room there, or name another place by XDG_CACHE_HOME: %s", pkg, dir, why)
			}
			missing.tried = append(missing.tried, v+": "+reason(err))
			for _, file := range found { // what came of it
				globErr = errors.Join(globErr, os.Remove(file))
			}
			if globErr != nil {
				return "", "", fmt.Errorf("guest: cache: %w", globErr)
			}
			continue
		}
		if globErr != nil || len(found) != 1 {
			return "", "", fmt.Errorf("guest: apt-get download %s left %d files", pkg, len(found))
		}
		return found[0], v, nil
	}
	return "", "", missing
}

// order returns the versions in the order in which to try them: the wanted one, then the
// others, the newest first.
func order(all []release, wanted string) []string {
	var first, rest []string
	for _, r := range all {
		if r.version == wanted {
			first = append(first, r.version)
		} else {
			rest = append(rest, r.version)
		}
	}
	return append(first, rest...)
}

// reason returns the package manager's own words in one line.
func reason(err error) string {
	c, ok := errors.AsType[*complaintError](err)
	if !ok {
		return err.Error()
	}
	for line := range strings.Lines(c.text) {
		if said, ok := strings.CutPrefix(strings.TrimSpace(line), "E: "); ok {
			return said
		}
	}
	return strings.Join(strings.Fields(c.Error()), " ")
}
