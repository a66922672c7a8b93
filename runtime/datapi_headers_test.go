//go:build dapl

package runtime

import (
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The headers are those of Debian's package libdapl-dev.
var headerDir = flag.String("dat2", "/usr/include/dat2", "where the DAT headers are")

func TestTheNumbersAreThoseOfTheHeaders(t *testing.T) {
	h := &headers{value: map[string]int64{}, broken: map[string]bool{
		// The headers define each of these by a name that they don't have.
		"DAT_IA_FIELD_IA_MAX_DTO_PER_OP": true,
	}}
	for _, name := range []string{"dat_error.h", "dat.h", "udat.h", "dat_registry.h", "dat_ib_extensions.h"} {
		text, err := os.ReadFile(filepath.Join(*headerDir, name))
		require.NoError(t, err)
		h.read(t, name, string(text))
	}
	got := numbersHead + strings.Join(h.lines, "\n") + "\n"
	if *update {
		require.NoError(t, os.WriteFile(numbersFile, []byte(got), 0o600))
	}
	want, err := os.ReadFile(numbersFile)
	require.NoError(t, err)
	assert.Equal(t, string(want), got)
	assert.Greater(t, len(h.lines), 600, "the headers were not understood")
}

const numbersHead = `# The names of DAT 2.0 in the order of its headers, which this is taken from
# (go test -tags dapl ./runtime -update) and compared with: calls, macros that
# are called, constants with their numbers, names of attributes, types.

`

// headers collects the declarations of C headers. It parses what occurs in DAT's
// headers, without a preprocessor: declarations under #ifdef count.
type headers struct {
	value  map[string]int64
	broken map[string]bool
	lines  []string
}

var (
	comments = regexp.MustCompile(`(?s)/\*.*?\*/|//[^\n]*`)
	// declaration is a call, an object-like macro, a macro that is called, an
	// enumeration's body, or a type's name.
	declaration = regexp.MustCompile(`(?m)^extern\s+DAT_RETURN\s+DAT_API\s+(\w+)\s*\(` +
		`|^[ \t]*#[ \t]*define[ \t]+(DAT_\w+)[ \t]+(\S[^\n]*)$` +
		`|^[ \t]*#[ \t]*define[ \t]+(dat_\w+)[ \t]*\(` +
		`|\benum\s+\w+\s*\{([^}]*)\}\s*(DAT_\w+)?` +
		`|^(?:typedef[^;{}()]*\s\*?|\}\s*)(DAT_\w+)\s*;`)
	directive = regexp.MustCompile(`(?m)^[ \t]*#.*$`)
)

func (h *headers) read(t *testing.T, file, text string) {
	h.lines = append(h.lines, "# "+file)
	text = strings.ReplaceAll(comments.ReplaceAllString(text, ""), "\\\n", " ")
	// Enumerations first, since macros above them name their constants.
	for _, m := range declaration.FindAllStringSubmatch(text, -1) {
		if m[5] != "" {
			h.enum(t, m[5], false)
		}
	}
	for _, m := range declaration.FindAllStringSubmatch(text, -1) {
		switch {
		case m[1] != "":
			h.lines = append(h.lines, "call "+m[1])
		case m[2] != "":
			h.define(m[2], strings.TrimSpace(m[3]))
		case m[4] != "":
			h.lines = append(h.lines, "macro "+m[4])
		case m[7] != "":
			h.lines = append(h.lines, "type "+m[7])
		default:
			if m[6] != "" {
				h.lines = append(h.lines, "type "+m[6])
			}
			h.enum(t, m[5], true)
		}
	}
}

// enum takes the constants of an enumeration.
func (h *headers) enum(t *testing.T, body string, list bool) {
	next := int64(0)
	for _, item := range strings.Split(directive.ReplaceAllString(body, ""), ",") {
		name, expr, explicit := strings.Cut(strings.TrimSpace(item), "=")
		if name = strings.TrimSpace(name); name == "" {
			continue
		}
		if explicit {
			v, err := h.eval(strings.TrimSpace(expr))
			require.NoError(t, err, "%s = %s", name, expr)
			next = v
		}
		h.value[name] = next
		if list {
			h.lines = append(h.lines, fmt.Sprintf("const %s %#x", name, next))
		}
		next++
	}
}

// define takes a macro if it is a number, a string or another call's name.
func (h *headers) define(name, text string) {
	switch v, err := h.eval(text); {
	case h.value[name] != 0 || h.broken[name]:
	case strings.HasPrefix(text, `"`):
		h.lines = append(h.lines, "string "+name+" "+text)
	case strings.HasPrefix(text, "dat_"):
		h.lines = append(h.lines, "call "+text)
	case err == nil:
		h.value[name] = v
		h.lines = append(h.lines, fmt.Sprintf("const %s %#x", name, v))
	}
}

var (
	cast     = regexp.MustCompile(`\((DAT_[A-Z_]+)\)`)
	wide     = regexp.MustCompile(`UINT64_C`)
	unsigned = regexp.MustCompile(`\(DAT_TIMEOUT\)`)
)

// eval evaluates a constant expression.
func (h *headers) eval(text string) (int64, error) {
	bare := strings.ReplaceAll(wide.ReplaceAllString(cast.ReplaceAllString(text, ""), ""), "~", "^")
	expr, err := parser.ParseExpr(bare)
	if err != nil {
		return 0, err
	}
	v, err := h.walk(expr)
	if unsigned.MatchString(text) {
		v = int64(uint32(v))
	}
	return v, err
}

func (h *headers) walk(expr ast.Expr) (int64, error) {
	switch e := expr.(type) {
	case *ast.ParenExpr:
		return h.walk(e.X)
	case *ast.Ident:
		if v, ok := h.value[e.Name]; ok {
			return v, nil
		}
	case *ast.BasicLit:
		if e.Kind == token.INT {
			return strconv.ParseInt(e.Value, 0, 64)
		}
	case *ast.UnaryExpr:
		if v, err := h.walk(e.X); err == nil && e.Op == token.XOR {
			return ^v, nil
		}
	case *ast.BinaryExpr:
		x, errX := h.walk(e.X)
		y, errY := h.walk(e.Y)
		switch {
		case errX != nil || errY != nil:
		case e.Op == token.OR:
			return x | y, nil
		case e.Op == token.SUB:
			return x - y, nil
		}
	}
	return 0, fmt.Errorf("not understood: %T", expr)
}
