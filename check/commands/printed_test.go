package commands

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

// short are options by which a command of bench, which takes a minute or more as it is printed, measures next
// to nothing; then it says that it could not answer, which is status 4.
const short = "--repeats 1 --duration 2ms"

// measures are commands of benchmarks, as key has them, each with the options that make it short.
var measures = map[string]string{
	"go run ./bench":                                                     short,
	"go run ./bench delivery":                                            short,
	"go run ./bench --provider iwarp:127.0.0.1":                          short,
	"go run ./bench --mode poll,channel --rate 50k,200k":                 short,
	"go run ./bench --size 64,4096 --depth 1,16":                         short,
	"go run ./bench --producers 1,2,4 --rate max":                        short,
	"go run ./bench --format json":                                       short,
	"go run ./bench --histograms report.hlog":                            short,
	"go run ./bench latency":                                             short,
	"go run ./bench bandwidth":                                           short,
	"go run ./bench scale":                                               short + " --conns 1,10",
	"go run ./bench connect":                                             short,
	"go run ./bench storage":                                             "--repeats 1 --duration 10ms --processors 2 --depth 4 --rate 500,1k",
	"go run ./bench idle":                                                short + " --connections 100 --for 100ms",
	"go run ./bench idle --streams":                                      short + " --connections 100 --for 100ms",
	"cd examples/volume && go run ./bench":                               "--turns 1 --time 50ms",
	"cd examples/volume && go run ./bench --stay 10m":                    "--stay 1s",
	"cd examples/volume && go run ./bench --away 3s":                     "--away 300ms",
	"./nvmeof beside":                                                    "--turns 1 --turn 20ms",
	"go test ./examples/nvmeof/nvme":                                     "",
	"go test -run ^$ -bench Command -cpu 1 ./examples/nvmeof/beside":     "-benchtime 1x",
	"go test ./runtime/inspect -run ^$ -bench Scrape -benchtime 20x":     "-benchtime 1x",
	"go test ./runtime/inspect -run ^$ -bench RoundTrips -benchtime 10x": "-benchtime 1x",
}

// elsewhere are the printed commands that this package does not run, by regular expressions, and what does, or
// what they want that the checks look for first: a stage of .ci/run, a capability, or an hour.
var elsewhere = map[string]string{
	`^go (test|run|build|test -bench)$`:                   "words: the tool itself",
	`^(cd examples/volume && )?go build `:                 "words: each program of the talks is built",
	`^go run \./bench dial$|^go run \./examples/dattest$`: "words: the talks have them with their arguments",
	`^cd examples/volume && volume ((serve|check)$|[a-z]+ (ADDR|DIR))|^cd examples/volume && volume --version`: "words: the talks have them with their arguments",
	`^go doc `:                                                       "words: each is run where flags are looked for",
	`^go test work$|^go test \./\.\.\.$`:                             "stage nocc",
	`^go test \./examples/nvmeof/\.\.\.$`:                            "stage nocc",
	`^go test (-v )?\./check/days( |$)`:                              "stage nocc",
	`^cd examples/volume && go test \./\.\.\.`:                       "stage race",
	`^go test \./check/peers -run NoProgram`:                         "stage strangers",
	`^go mod (edit|tidy)`:                                            "stage consumer",
	`^make tools$`:                                                   "stage install",
	`^make fmt lint race$`:                                           "stage race",
	`^make (race )?mutate( fuzz)?$`:                                  "stage mutate",
	`^\.ci/run( lint race| race)?$`:                                  "stage race",
	`^\.ci/run apidiff$`:                                             "stage apidiff",
	`^bash bench/instructions\.sh$`:                                  "stage count",
	`^go run \./check/nethttp`:                                       "stage nethttp",
	`^go test \./check/day( |$)`:                                     "stage day",
	`^go run \./bench rpc( --write)?$`:                               "stage peers",
	`^go run \./bench peers($| --only)`:                              "stage peers",
	`^cd check/world && go run \./results`:                           "stage world",
	`^go run \./bench (results|storage --write)$`:                    "hours: they run what is tried here, and keep pages of the repository",
	`^cd check/world && go run \./plant `:                            "hours: a campaign of seeds",
	`^cd examples/volume && go test \. -run NothingOfStrangers `:     "hours: ten minutes of strangers, of which stage race runs seconds",
	`^cd examples/volume && make test-volume$`:                       "hours: 200 histories, of which stage race runs five",
	`^make test-(ibv|iwarp test-ibv test-nvmeof)$`:                   "stage verbs",
	`^go run \./check/guest/cmd/guest `:                              "stage iwarp",
	`^bash bench/((storage-)?guest|ibv)\.sh`:                         "capability: verbs",
	`^go run \./bench (peers |storage (--counts )?)?--provider ibv:`: "capability: verbs",
	`^go run \./examples/rdmaping (pingpong|write_bw HOST)$`:         "capability: verbs",
}

// oneDash is a flag of several letters with one dash, which the examples take as with two.
var oneDash = regexp.MustCompile(` -([a-z]{2})`)

// key is a command with the directory that it runs in.
func (c *command) key() string {
	text := strings.Join(c.args, " ")
	if strings.HasPrefix(text, "go run ./examples/") {
		text = oneDash.ReplaceAllString(text, " --$1")
	}
	if c.dir != "." {
		text = "cd " + c.dir + " && " + text
	}
	return text
}

func TestEachPrintedCommandIsTriedOrSaysWhereItIs(t *testing.T) {
	var tried []string
	for text := range ends {
		tried = append(tried, text)
	}
	for text := range measures {
		tried = append(tried, text)
	}
	for _, talk := range talks {
		for _, s := range talk.steps {
			tried = append(tried, s.text)
		}
	}
	var printed []string
	used := make(map[string]bool)
	for _, c := range find(t) {
		printed = append(printed, c.key())
		if slices.Contains(tried, c.key()) {
			continue
		}
		found := false
		for pattern := range elsewhere {
			if regexp.MustCompile(pattern).MatchString(c.key()) {
				found, used[pattern] = true, true
			}
		}
		assert.True(t, found, "%s:%d: nobody tries %s", c.page, c.line, c.key())
	}
	for pattern, why := range elsewhere {
		assert.True(t, used[pattern], "no page prints %s", pattern)
		if stage, is := strings.CutPrefix(why, "stage "); is {
			assert.Regexp(t, `(?m)^(?:stage|beside) `+stage+` +\d`, read(t, ".ci/run"), pattern)
		}
	}
	for _, text := range tried {
		assert.True(t, slices.Contains(printed, text) || strings.HasPrefix(text, "cp ") || strings.HasPrefix(text, "volume "), "no page prints %s", text)
	}
}
