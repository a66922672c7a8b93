package iwarp

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The documentation of Config.Params ends what it says of a parameter with the default, in
// brackets. To set the parameter to that changes nothing.
func TestTheParametersHaveTheDefaultsOfTheirDocumentation(t *testing.T) {
	source, err := os.ReadFile("provider.go")
	require.NoError(t, err)
	_, list, _ := strings.Cut(string(source), "Params are the settings")
	list, _, _ = strings.Cut(list, "\tParams map[string]string")
	parameters := regexp.MustCompile(`(?m)^\t//\t([a-z]\w*) {2,}`).FindAllStringSubmatchIndex(list, -1)
	// Of these the default is no value, but follows from the backlog, or from the system.
	without := map[string]bool{"halfopen": true, "halfopenip": true, "congestion": true}
	for i, at := range parameters {
		end := len(list)
		if i+1 < len(parameters) {
			end = parameters[i+1][0]
		}
		name, said := list[at[2]:at[3]], list[at[1]:end]
		if without[name] {
			continue
		}
		usual := regexp.MustCompile(`\(([^() ]*)\)\s*$`).FindStringSubmatch(strings.TrimSpace(said))
		if !assert.NotNil(t, usual, "%s has no default: %s", name, said) {
			continue
		}
		s := defaultSettings()
		require.NoError(t, s.apply(name, strings.Trim(usual[1], `"`)))
		assert.Equal(t, defaultSettings(), s, "%s is documented as %s", name, usual[1])
	}
	assert.Greater(t, len(parameters), 20)
}

// SECURITY.md says "`name`, 30 s" of limits, in any of its tables.
func TestTheLimitsThatTheSecurityPageNamesAreTheDefaults(t *testing.T) {
	page, err := os.ReadFile("../../SECURITY.md")
	require.NoError(t, err)
	limits := regexp.MustCompile("`([a-z]+)`(?:,| of| \\()\\s*(\\d+) s\\b").FindAllStringSubmatch(string(page), -1)
	for _, limit := range limits {
		s := defaultSettings()
		require.NoError(t, s.apply(limit[1], limit[2]+"s"), limit[0])
		assert.Equal(t, defaultSettings(), s, "SECURITY.md: %s", limit[0])
	}
	assert.GreaterOrEqual(t, len(limits), 6)
}
