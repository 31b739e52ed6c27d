# The words people type. Meson (meson.build) describes the build; nothing here repeats it.
BUILD ?= build
PREFIX ?= /usr/local
STATIC ?= build-static
PACKAGES ?= build-packages
# Of packages: this machine, or with Debian's cross compiler another one (arm64).
ARCH ?= $(shell dpkg --print-architecture 2>/dev/null)
STATIC_OF = $(STATIC)$(if $(filter-out $(shell dpkg --print-architecture 2>/dev/null),$(ARCH)),-$(ARCH))
FUZZ_SECONDS ?= 3600
CHECK_SECONDS ?= 1

.DEFAULT_GOAL := all
.PHONY: all arm64 deps demo test test-arm64 unwind-arm64 test-kernels test-kernels-arm64 soak inject fuzz bench install uninstall static deb package-deps reproduce release package-test clean help

all: $(BUILD)/build.ninja
	ninja -C $(BUILD)

$(BUILD)/build.ninja:
	@command -v meson >/dev/null || { echo "meson is missing: run 'make deps' first" >&2; exit 1; }
	meson setup --prefix $(PREFIX) $(BUILD)

deps:
	@tools/deps.sh

demo:
	@tools/deps.sh build
	@$(MAKE) --no-print-directory all
	@tools/demo.sh $(BUILD)

test:
	@tools/deps.sh test
	@tools/run-tests --fuzz-seconds $(CHECK_SECONDS)

test-kernels:
	@tools/deps.sh kernels
	@$(MAKE) --no-print-directory all
	@tools/test-kernels --build $(BUILD) $(KERNEL_FLAGS)

arm64:
	@tools/deps.sh arm64
	@[ -f build-arm64/build.ninja ] || meson setup --cross-file tools/arm64.cross -Dcollectors=enabled build-arm64
	ninja -C build-arm64

test-arm64: arm64
	meson test -C build-arm64 --no-rebuild --suite unit

# The unwind tables of every library of arm64 on this machine against readelf's reading of them; by the build for this machine.
unwind-arm64: all
	@tools/deps.sh arm64
	@tools/check-unwind $(BUILD)/tests/unit/unwind-dump $$(find /usr/lib/aarch64-linux-gnu -name '*.so.*' -type f)

test-kernels-arm64: arm64
	@tools/test-kernels --arch arm64 --rights '' --jobs 1 $(KERNEL_FLAGS)

soak: deps all
	@tools/soak --build $(BUILD)
	@tools/agentsoak --build $(BUILD) $(AGENT_FLAGS)

inject: deps all
	@GASFLAME=$(BUILD)/src/cmd/gasflame TRUTH=$(BUILD)/tests/system/truth INJECT=$(BUILD)/tests/system/inject.so \
		python3 tests/system/safety/inject.py $(INJECT_FLAGS)

fuzz: deps
	@tools/run-tests --only fuzz --fuzz-total $(FUZZ_SECONDS)

bench:
	@tools/deps.sh bench
	@$(MAKE) --no-print-directory all
	@bench/run.py --build $(BUILD) $(BENCH_FLAGS)

# With DESTDIR below that folder. A prefix that the build was not made for is told to it.
install: all
	@meson introspect --buildoptions $(BUILD) | grep -q '"name": "prefix", "value": "$(PREFIX)"' || \
		{ meson configure --prefix $(PREFIX) $(BUILD) && ninja -C $(BUILD); }
	meson install --no-rebuild -C $(BUILD)

# What the last install from $(BUILD) made, and nothing else.
uninstall:
	@tools/uninstall $(BUILD)

# Packages: one file for any distribution, and Debian's. The libraries of the first come from Debian's sources, once.
package-deps:
	@tools/deps.sh package
	@[ "$(STATIC_OF)" = "$(STATIC)" ] || tools/deps.sh $(ARCH)

static: package-deps
	packaging/static/build.sh $(STATIC_OF) $(ARCH)

deb: package-deps
	packaging/deb.sh $(PACKAGES) $(ARCH)

reproduce: package-deps
	packaging/reproduce.sh $(WHAT)

release: package-deps
	@tools/deps.sh arm64
	STATIC=$(CURDIR)/$(STATIC) packaging/release.sh $(PACKAGES)

package-test: package-deps
	@tools/deps.sh arm64
	packaging/test.sh $(PACKAGES) $(STEPS)

clean:
	rm -rf $(BUILD) build-arm64 build-gcc build-sanitizers $(STATIC) $(STATIC)-arm64 $(PACKAGES)

help:
	@echo "make            build in $(BUILD)/"
	@echo "make deps       install what is missing (Debian, apt-get)"
	@echo "make demo       profile the bundled workload, leave a report"
	@echo "make test       both builds, all tests, in 14 to 18 minutes on two cores; the last line is the sum"
	@echo "make soak       the heap's and the tasks' hooks in and out of a node 4,000 times, of targets that die or are hostile: an hour, as root;"
	@echo "                then an agent with three targets for an hour (AGENT_FLAGS='--minutes 60'): its cost, its memory, every window once"
	@echo "make test-kernels  record in emulated machines with other kernels; KERNEL_FLAGS='--kernels 6.12,6.18 --cases heap',"
	@echo "                '--markdown FILE' for the tables of the manual, '--system' for system tests in such machines"
	@echo "make arm64      build for arm64 in build-arm64/, with Debian's cross compiler"
	@echo "make test-arm64 the unit tests of that build, in emulated processes"
	@echo "make unwind-arm64 unwind tables of arm64 libraries against readelf's reading"
	@echo "make test-kernels-arm64  record in emulated arm64 machines; KERNEL_FLAGS as above"
	@echo "make inject     a fault in each allocation and system call of record, run, report and others, one in each run: as root;"
	@echo "                INJECT_FLAGS='--commands heap --classes ptrace' for some of them"
	@echo "make fuzz       all fuzzers, FUZZ_SECONDS=$(FUZZ_SECONDS) together; executions are counted"
	@echo "make bench      gasflame and perf side by side; BENCH_FLAGS='--quick --only stacks'"
	@echo "make install    into PREFIX=$(PREFIX), below DESTDIR; make uninstall takes away what it installed"
	@echo "make static     one file for any distribution, $(STATIC)/gasflame; ARCH=arm64: for that, $(STATIC)-arm64/gasflame"
	@echo "make deb        a package for Debian, in $(PACKAGES)/; ARCH=arm64: for that, with Debian's cross compiler"
	@echo "make release    both, for amd64 and arm64, with checksums and a list of what is in them (SBOM), in $(PACKAGES)/"
	@echo "make reproduce  build both in two folders: the same bytes? WHAT='static-arm64 deb-arm64' for that"
	@echo "make package-test  packages in other distributions' roots, in container engines, in emulated machines with systemd, of both architectures;"
	@echo "                as root; STEPS='static deb' for some of them"
