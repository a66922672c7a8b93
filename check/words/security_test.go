package words

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// security has the rows and points of SECURITY.md that promise something, by what they begin with, and the
// tests that show it: directories, each with the names behind it.
var security = map[string]string{
	"| `loop` |":                      "hw/iwarp TestQualifiersArePorts",
	"| connections that have sent no": "hw/iwarp TestTheBoundsOfStartupsFollowTheBacklog TestEachAddressHasItsShareOfSilentConnections",
	"| one more than that":            "hw/iwarp TestTheOldestSilentConnectionGivesWay TestAConnectionWhoseRequestHasComeDoesNotGiveWay",
	"| time for the request":          "hw/iwarp/wire TestAnMPAFrameIsIncompleteUpToItsLastOctet hw/iwarp TestSilentConnectionsDoNotKeepAnotherOut",
	"| private data |":                "hw/iwarp/wire TestPrivateDataFitsUpToItsLimits",
	"| requests that wait":            "ep TestTheBacklogRejectsWhatExceedsIt",
	"| descriptors of the process":    "hw/iwarp TestAListenerWithoutADescriptorRefusesItsPeersAtOnceAndRecovers TestAListenerKeepsItsSpareDescriptorUntilAPeerWaits",
	"| refused connections":           "hw/iwarp TestRefusedConnectionsAreKeptInBounds",
	"A stranger that speaks HTTP":     "runtime/inspect TestAPeerOfAnotherProtocolIsNamedOnThePageAndOnceInTheLog",
	"So a stranger that is silent":    "hw/iwarp TestSilentConnectionsDoNotKeepAnotherOut",
	"The page of `runtime/inspect`":   "runtime/inspect TestAVisitorOnlyLooks TestANameOfAnotherSiteDoesNotReachThePage TestAPageOfAnotherSiteIsRefusedWhateverItAsks TestAPageWithoutAHostIsOnLoopback TestSlowVisitorsLeaveOnlyWhereTheirAddressHasTheMost TestThePageAnswersInAProcessWithoutADescriptor TestAVisitorsTraceHasABound TestAVisitorMayNotTraceWhatTheProgramDoesNotAllow",
	"iWARP has neither":               "runtime ExampleWithProvider_overTLS",
	"- read and write each region":    "hw/iwarp TestTheCauseOfAWriteThatTheMemoryDoesNotAllowNamesThePrivilege TestADeregisteredRegionIsOutOfAPeersReach",
	"- invalidate remote keys":        "hw/iwarp TestASendInvalidatesTheRemoteKeyAndNoOther",
	"- use up the receives":           "check/mistakes TestEachMistakeIsAnsweredByWhatToDo",
	"A server of `runtime/rpc`":       "runtime/rpc TestAnAnswerIsKeptForACallerWhoFetchesAndNoLongerThanItMay TestAClientThatStallsHoldsNoHandler",
	"| reach anything else":           "hw/iwarp TestADeregisteredRegionIsOutOfAPeersReach TestARemoteKeyIsNotALocalKey",
	"| have more reads outstanding":   "hw/iwarp TestMoreReadsThanAgreedBreakTheConnection",
	"| stop the sender for ever":      "hw/iwarp TestAPeerThatTakesNothingHasTheStallTime",
	"| begin a frame":                 "hw/iwarp TestTheRestOfAnFPDUHasTheStallTime",
	"| disappear with its host":       "hw/iwarp TestTCPFindsAHostThatIsGoneWithinTheKeepAlive TestAPeerThatVanishesIsNoticedWithinTheKeepAlive",
	"| be stuck, unnoticed":           "hw/iwarp TestASilentPeerIsProbedByAnEmptyRead",
	"| delay the end":                 "hw/iwarp TestAPeerThatDoesNotTakeTheEndHasTheLinger TestADrainHasTheLingerForThePeersEnd",
	"| make others slow":              "hw/iwarp TestDeregisterLooksAtNoIdleConnection",
	"| break another's connection":    "hw/iwarp TestTwoPeersMayWriteTheSameMemoryAtOnce TestWhoWritesToARegionThatIsSentBreaksNoCRC",
	"| end the process":               "hw/iwarp FuzzEngine",
	"- grant few privileges":          "mem TestNothingTouchesARegionAfterFree",
	"- answer or reject requests":     "check/days TestABadDayIsToldByTheFirstLineWithinAMinute",
	"- give buffers back":             "check/days TestABadDayIsToldByTheFirstLineWithinAMinute",
	"- make a zone for each peer":     "mem TestAWindowIsOfItsZone ep TestAnEndpointsWindowIsReachedByItsPeerAlone",
}

// untested are rows and points that say what others do, or what is a figure of its own, with the reason.
var untested = map[string]string{
	"| `iwarp` |":              "what systems route",
	"| `iwarp:192.0.2.7`":      "what systems route",
	"| `iwarp` with":           "what the program's function does",
	"| `ibv`":                  "needs a device",
	"| memory of such":         "a sum of parts of Go's library",
	"| make this end allocate": "a sum of parts",
	"- choose what an event":   "what a peer may do",
	"- know who its peers":     "the program's part",
	"- keep registered memory": "the program's part",
	"- copy what a peer wrote": "the program's part",
	"- check the contents":     "the program's part",
	"- listen at an address":   "the program's part",
	"| provider |":             "a head",
	"| | bound":                "a head",
	"| | because":              "a head",
	"|---":                     "a head",
}

var promised = regexp.MustCompile(`^(Test|Fuzz|Example)[A-Z]`)

// codeOf is the text of a directory's tests.
func codeOf(t *testing.T, dir string) string {
	files, err := filepath.Glob(filepath.Join(root, dir, "*_test.go"))
	require.NoError(t, err)
	var code strings.Builder
	for _, f := range files {
		b, err := os.ReadFile(f)
		require.NoError(t, err)
		code.Write(b)
	}
	return code.String()
}

func TestEachPromiseOfSecurityHasItsTest(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(root, "SECURITY.md"))
	require.NoError(t, err)
	lines := strings.Split(string(text), "\n")
	has := func(begin string) (found bool) {
		for _, l := range lines {
			found = found || strings.HasPrefix(l, begin)
		}
		return found
	}
	for begin, tests := range security {
		assert.True(t, has(begin), "SECURITY.md has no line %q", begin)
		code := ""
		for _, word := range strings.Fields(tests) {
			if !promised.MatchString(word) {
				code = codeOf(t, word)
				continue
			}
			assert.True(t, strings.Contains(code, "\nfunc "+word+"("), "%s, for %q", word, begin)
		}
	}
	for begin := range untested {
		assert.True(t, has(begin), "SECURITY.md has no line %q", begin)
	}
	for i, l := range lines {
		if !strings.HasPrefix(l, "| ") && !strings.HasPrefix(l, "- ") {
			continue
		}
		known := false
		for _, all := range []map[string]string{security, untested} {
			for begin := range all {
				known = known || strings.HasPrefix(l, begin)
			}
		}
		assert.True(t, known, "SECURITY.md:%d: no test, and no reason for none: %s", i+1, l)
	}
}
