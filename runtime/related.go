package runtime

// HARelationship says how two adapters stand to each other for high availability:
// DAT_HA_RELATIONSHIP.
type HARelationship uint32

// The relationships.
const (
	HAFalse       HARelationship = 0 // neither can take the other's place
	HATrue        HARelationship = 1
	HAUnknown     HARelationship = 2
	HAConflicting HARelationship = 3 // each says something else
)

// HALoadBalancing says how a provider shares out load over the adapters that can
// take each other's place: DAT_HA_LB.
type HALoadBalancing uint32

// The ways to share out load.
const (
	HALBNone      HALoadBalancing = 0
	HALBInterComm HALoadBalancing = 1 // by communications
	HALBIntraComm HALoadBalancing = 2 // within one
)

// Related tells whether the adapters of two names, which are names for [Open],
// can take each other's place. No provider of this library does that, nor do they
// know of others, so it is HAFalse for any two names that there are; one that
// there is not is PROVIDER_NOT_FOUND, one that can be none INVALID_PARAMETER.
// Nothing is opened. It answers to dat_registry_providers_related.
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
