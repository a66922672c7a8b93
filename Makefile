# make help lists the targets. None of them is needed to use the library:
# go run ./examples/quickstart and go test work are enough.

GO        ?= go
FUZZTIME  ?= 50000x
BENCH     ?= .
BENCHTIME ?= 1s

# The library and the modules beside it that need little.
PACKAGES := ./... ./bench/... ./check/... ./examples/...

GOBIN := $(shell $(GO) env GOPATH)/bin

# Pinned, so that two machines agree; .ci/run installs the same.
GOFUMPT_VERSION  := v0.12.0
GOLANGCI_VERSION := v2.15.0

.DEFAULT_GOAL := help
.PHONY: help tools fmt tidy vet build lint test race mutate fuzz examples bench cross consumer peers test-volume test-volume-guest test-iwarp test-ibv test-stream test-nvmeof world ci

help: ## list the targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## (.*)/\1\t\2/' | expand -t 12

tools: ## install the formatter and the linter at their pinned versions
	$(GO) install mvdan.cc/gofumpt@$(GOFUMPT_VERSION)
	$(GO) install github.com/golangci/golangci-lint/v2/cmd/golangci-lint@$(GOLANGCI_VERSION)

fmt: ## format every file
	$(GOBIN)/gofumpt -w .

tidy: ## make each go.mod say what its module uses
	for mod in $$($(GO) list -m -f '{{.Dir}}'); do (cd $$mod && GOWORK=off $(GO) mod tidy) || exit 1; done

vet: ## go vet
	$(GO) vet work

build: ## build everything, without a C compiler
	CGO_ENABLED=0 $(GO) build work

lint: ## golangci-lint, with the import rules
	PATH=$(GOBIN):$$PATH bash .ci/lint.sh

test: ## the tests, as the README runs them
	$(GO) test work

race: ## the tests under the race detector, in a random order
	$(GO) test -race -shuffle=on -timeout 20m work

mutate: ## break the code in known ways; each must make its test fail
	$(GO) run ./check/mutate

fuzz: ## run each fuzz target for FUZZTIME
	FUZZTIME=$(FUZZTIME) bash .ci/fuzz.sh

examples: ## run the examples on small input
	bash .ci/examples.sh

bench: ## run the benchmarks that match BENCH for BENCHTIME
	$(GO) test -run '^$$' -bench '$(BENCH)' -benchtime $(BENCHTIME) -benchmem $(PACKAGES)

cross: ## build and vet for each system and architecture
	bash .ci/cross.sh

consumer: ## use the library from another module
	bash .ci/consumer.sh

peers: ## gRPC and QUIC, in a module of their own, and bench peers
	CI_TEMP=$$(mktemp -d) bash .ci/peers.sh

test-stream: ## byte streams: nettest 100 times under the race detector, and Go's own net/http tests
	$(GO) test -race -count=100 -timeout 50m -run 'TestAStreamIsANetConn$$' ./runtime/stream
	$(GO) run ./check/nethttp -long

test-iwarp: ## hw/iwarp against the kernel's soft-iWARP, in a QEMU guest (on Debian, as root: it installs what it needs)
	bash check/guest/install.sh
	bash hw/iwarp/test-guest.sh

test-ibv: ## hw/ibv on soft-RoCE and soft-iWARP, in a QEMU guest (on Debian, as root: it installs what it needs)
	bash check/guest/install.sh
	bash hw/ibv/test-guest.sh

test-volume: ## 200 histories of a volume's registers under all troubles that it has to survive, with a summary
	cd examples/volume && $(GO) test -count=1 -timeout 8h -parallel 3 -run TestHistories -args -seeds 200

test-volume-guest: ## Linux keeps a volume mounted while its nodes are killed, stopped, cut off and replaced, from a QEMU guest (on Debian, as root)
	bash check/guest/install.sh
	GODAT_VOLUME_SLOW=3 bash examples/volume/test-guest.sh long

test-nvmeof: ## Linux mounts examples/nvmeof's disks on hw/iwarp, siw and rxe, in a QEMU guest and outside it (on Debian, as root)
	bash check/guest/install.sh
	set -e; for p in iwarp:10.0.2.15 ibv:siw0 ibv:rxe0; do \
		GODAT_NVMEOF_PROVIDER=$$p GODAT_NVMEOF_SLOW=3 bash examples/nvmeof/test-guest.sh long; \
	done
	GODAT_NVMEOF_SLOW=3 bash examples/nvmeof/test-guest.sh outside
	GODAT_NVMEOF_SLOW=3 bash examples/nvmeof/test-guest.sh beside

world: ## programs as functions of a seed for an hour, each seed twice: what was run, and what was found
	cd check/world && $(GO) run ./results -short 1000000 -seeds 1000000 -for 1h -twice

ci: ## all that the checks on a clean machine do
	.ci/run
