# Every command of the project. The README names the ones a newcomer needs.
GO       ?= go
VERSION  ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo unknown)
PREFIX   ?= /usr/local
SYSCONF  ?= /etc
FUZZTIME ?= 10s
SEED     ?=
SEEDS    ?= 200
NFPM     ?= v2.45.2
PACKAGE_DIR ?= bin/
PACKAGE_VERSION ?= $(shell git describe --tags --match 'v[0-9]*' 2>/dev/null | sed 's/^v//;s/-/+/' | grep . || \
  echo 0.0.0~git$$(git rev-list --count HEAD 2>/dev/null || echo 0))
# Packages that need the finished binary or other programs; all others test themselves.
OUTSIDE  := kring/conformance

export CGO_ENABLED ?= 0

.PHONY: build run test tools check unit race fuzz sim bench bench-compare conformance suites swap twins power kernel install package clean

# One static binary.
build:
	$(GO) build -trimpath -ldflags '-s -w -X main.version=$(VERSION)' -o bin/kring ./daemon

# Build and start a broker on the embedded store: data in ./kring-data, port 9092, numbers on port 9404.
run: build
	bin/kring broker --override kring.metrics.address=127.0.0.1:9404

# Everything: install what the tests need if it is missing, then run all tests.
test: tools build check unit conformance

# Programs and jars the tests run against; nothing is installed that is there.
tools:
	@conformance/tools

check:
	@test -z "$$(gofmt -l $$(git ls-files --cached --others --exclude-standard '*.go'))" || { echo "not gofmt-ed:"; gofmt -l $$(git ls-files '*.go'); exit 1; }
	$(GO) vet ./...
	$(GO) test -count=1 .

# Unit tests, among them the broker and the command line with 1, 2 and 4 loops.
unit: build
	$(GO) test -count=1 -timeout 20m $$($(GO) list ./... | grep -v '^$(OUTSIDE)')

# Real clients, Kafka's recorded answers and a live Kafka against the binary.
conformance: tools build
	KRING=$(CURDIR)/bin/kring KRING_PEERS_TEST=1 $(GO) test -count=1 -p 1 -timeout 40m ./conformance/...

# Client libraries' own tests of a broker, all of them, with 1, 2 and 4 loops (SUITES=name,… LOOPS=n,… for some; PEER=kafka: the mark).
suites: tools build
	KRING=$(CURDIR)/bin/kring SUITES=$${SUITES:-all} LOOPS=$${LOOPS:-1,2,4} $(GO) test -count=1 -timeout 90m -run TestSuites -v ./conformance/suites

# A data directory from Kafka to kring and back under load, ROUNDS times (4 of them are in make conformance); then one with transactions.
# Each client reads it from either.
swap: tools build
	KRING=$(CURDIR)/bin/kring KRING_PEERS_TEST=1 KRING_SWAP_ROUNDS=$${ROUNDS:-10} $(GO) test -count=1 -timeout 40m -run 'TestSwap|TestReadCommitted' -v ./conformance/swap

# The same requests, crashes and damage to a live Kafka and to kring, and every file compared; most of it is in make conformance too.
# With 1, 2 and 4 loops.
twins: tools build
	KRING=$(CURDIR)/bin/kring TWINS=long $(GO) test -count=1 -timeout 40m -v ./conformance/twins

# The power is cut CUTS times at random moments of a logged disk, on ext4 and on XFS.
power: tools build
	KRING=$(CURDIR)/bin/kring POWER_CUTS=$${CUTS:-100} $(GO) test -count=1 -timeout 60m -v -run TestPowerCut ./conformance

# The ring's tests on Debian's own kernel (6.1 on Debian 12), emulated.
kernel:
	conformance/kernel

race:
	CGO_ENABLED=1 $(GO) test -race -count=1 -timeout 40m $$($(GO) list ./... | grep -v '^$(OUTSIDE)')

# Every fuzz target for FUZZTIME each.
fuzz:
	@for dir in $$(grep -rl --include='*_test.go' '^func Fuzz' . | xargs -n 1 dirname | sort -u); do \
	  for target in $$(sed -n 's/^func \(Fuzz[A-Za-z0-9_]*\)(.*/\1/p' $$dir/*_test.go); do \
	    echo "$$dir $$target"; $(GO) test -run '^$$' -fuzz "^$$target\$$" -fuzztime $(FUZZTIME) $$dir || exit 1; \
	  done; done

# A whole broker on a simulated machine, broken on purpose: SEEDS=n stories, or the one of SEED=n told line by line.
sim:
ifeq ($(SEED),)
	SEEDS=$(SEEDS) $(GO) test -count=1 -timeout 60m ./sim
else
	SEED=$(SEED) $(GO) test -count=1 -v -run '^TestStory$$' ./sim
endif

# Go's own benchmarks: allocations per request above all.
bench:
	$(GO) test -run '^$$' -bench . -benchmem $$($(GO) list ./... | grep -v '^$(OUTSIDE)')

# Kring and Apache Kafka 3.9 in turn on this machine: a table of ratios.
bench-compare: tools build
	$(GO) run ./bench/compare -kring bin/kring -rounds 3 -time 10s -fill 0.85

# The program, its completion, and the service: user, unit and settings (those there are stay).
install: build
	install -D -m 755 bin/kring $(DESTDIR)$(PREFIX)/bin/kring
	install -d $(DESTDIR)$(PREFIX)/share/bash-completion/completions $(DESTDIR)$(PREFIX)/lib/systemd/system
	bin/kring completion bash >$(DESTDIR)$(PREFIX)/share/bash-completion/completions/kring
	sed 's,/usr/bin/kring,$(PREFIX)/bin/kring,' systemd/kring.service >$(DESTDIR)$(PREFIX)/lib/systemd/system/kring.service
	install -D -m 644 systemd/kring.sysusers $(DESTDIR)$(PREFIX)/lib/sysusers.d/kring.conf
	test -e $(DESTDIR)$(SYSCONF)/kring/server.properties || \
	  install -D -m 644 systemd/server.properties $(DESTDIR)$(SYSCONF)/kring/server.properties
	@echo 'next: systemd-sysusers && systemctl daemon-reload && systemctl enable --now kring'

# A Debian package in bin/. A version without a tag sorts before every release.
package: build
	bin/kring completion bash >bin/kring.bash
	PACKAGE_VERSION=$(PACKAGE_VERSION) GOARCH=$$($(GO) env GOARCH) \
	  $(GO) run github.com/goreleaser/nfpm/v2/cmd/nfpm@$(NFPM) package --config systemd/nfpm.yaml --packager deb --target $(PACKAGE_DIR)

clean:
	rm -rf bin bench-data
