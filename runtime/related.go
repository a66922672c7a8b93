package runtime

// HARelationship says whether two adapters can take each other's place, for high
// availability: DAT_HA_RELATIONSHIP.
type HARelationship uint32

// The relationships.
const (
	HAFalse       HARelationship = 0 // neither can take the other's place
	HATrue        HARelationship = 1
	HAUnknown     HARelationship = 2
	HAConflicting HARelationship = 3 // the two contradict each other
)

// HALoadBalancing says how a provider shares out load over adapters that can take each
// other's place: DAT_HA_LB.
type HALoadBalancing uint32

// The ways to share out load.
const (
	HALBNone      HALoadBalancing = 0
	HALBInterComm HALoadBalancing = 1 // by connections
	HALBIntraComm HALoadBalancing = 2 // within one
)

// Related tells whether two adapters, by their names for [Open], can take each other's
// place. No provider of this library has such adapters, so the answer is HAFalse for
// any two names that Open finds. A name that it does not find is PROVIDER_NOT_FOUND, a
// malformed one INVALID_PARAMETER. Nothing is opened. It answers to
// dat_registry_providers_related.
func Related(a, b string) (HARelationship, error) {
	for _, name := range [...]string{a, b} {
		from, err := find("runtime.Related", name, &config{})
		if err != nil {
			return HAUnknown, err
		}
		from.release()
	}
	return HAFalse, nil
}
