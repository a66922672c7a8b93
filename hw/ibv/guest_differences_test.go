//go:build guest

package ibv

import (
	"flag"
	"fmt"
	"os"
	"strings"
)

// differences are the cases of the contract suite that a kind of device can't pass,
// and why. Nothing else may fail. The names are what the suite prints, without the
// suite's.
var differences = map[string]map[string]string{
	"": { // verbs
		"send/a_solicited_send_marks_the_receive's_completion": "no completion of verbs' says that it was solicited",
	},
	"siw": {
		"polled/a_queue_for_solicited_completions":                             "siw has no event for solicited completions alone; it wakes for all",
		"memory/each_operation_needs_its_privilege_on_the_remote_side":         readsOfSIW,
		"memory/remote_ranges_stay_within_their_region":                        readsOfSIW,
		"memory/remote_ranges_are_of_the_peer's_zone":                          readsOfSIW,
		"memory/the_key_of_a_region_that_is_gone_is_good_for_nothing_remotely": readsOfSIW,
		"memory/a_made-up_key_is_good_for_nothing":                             readsOfSIW,
		"deregister/after_Deregister_of_a_read's_target":                       readsOfSIW,
		"connect/the_active_side_is_up_before_anything_completes_on_it":        acceptorFirst,
		"deregister/after_Deregister_of_a_read's_sink":                         regionOnce,
		"deregister/after_Deregister_of_a_receive's_buffer":                    regionOnce,
		"failure/requests_before_the_one_that_fails":                           readsCut,
		"connect/Accept_when_the_initiator_has_gone":                           "the kernel can't give up an attempt on iWARP: the acceptor is up for a moment",
	},
}

// Why soft-iWARP differs.
const (
	readsOfSIW    = "siw flushes a read that the peer refuses, and serves reads of any region with a remote key"
	readsCut      = "siw ends a connection at a request that fails at home, and flushes the reads before it whose answers have not come"
	acceptorFirst = "siw refuses an answer to a request for a connection with a message close behind it, as MPA demands of the initiator to be first"
	regionOnce    = "siw looks at a region at the beginning of what comes into it, and places the rest of it later"
)

func init() { beforeTests = leaveOutDifferences }

// leaveOutDifferences has the suite's runner leave the cases out, and says so.
func leaveOutDifferences() {
	var patterns []string
	for kind, cases := range differences {
		if !strings.HasPrefix(os.Getenv("GODAT_GUEST_DEVICE"), kind) {
			continue
		}
		for name, why := range cases {
			fmt.Printf("different: %s: %s\n", name, why)
			group, leaf, _ := strings.Cut(name, "/")
			patterns = append(patterns, fmt.Sprintf("^TestContract.*$/^%s$/^%s", group, leaf))
		}
	}
	if err := flag.Set("test.skip", strings.Join(patterns, "|")); err != nil {
		panic(err)
	}
}
