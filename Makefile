# make help                 what can be made
# make demo                 watch four trainers train one model, two kills included; STRATEGY=allreduce, sharded or server (MODE=async)
# make test                 everything that needs no GPU; ends with "N passed, N failed"
# make sim SEED=273         replay one simulated run
# make BLAS=1               into build-blas, with float32 products by OpenBLAS; tests are for the build without
#
# Here: the flags, what the programs are made of, and the goals of a user. Beside what they are about:
#
#     common/compute/cuda/rules.mk    the library for GPUs
#     systemd/rules.mk                make install
#     tests/rules.mk                  make test, asan, sim, live, fuzz, bench: what is measured and checked

# ---- flags ----------------------------------------------------------------------------------------

X86_64   := $(filter x86_64,$(shell uname -m))
B        ?= build$(if $(filter 1,$(BLAS)),-blas)
SAN      ?=
OPT      ?= -O2 -g
ifeq ($(origin CC),default)
CC        = gcc
endif
WARN      = -Wall -Wextra -Wpedantic -Wconversion -Wshadow -Wundef -Wwrite-strings -Werror
WARN_C    = $(WARN) -Wstrict-prototypes -Wmissing-prototypes -Wold-style-definition
# Against what a stranger's bytes might do (tests/hardened.sh looks for all of it). Sanitizers have their own.
HARDEN    = $(if $(SAN),,-fstack-protector-strong -fstack-clash-protection $(if $(X86_64),-fcf-protection) -U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=3)
# One order of operations per number, on every compiler: no contraction, no fast-math.
CFLAGS   += -std=gnu11 -D_GNU_SOURCE $(OPT) $(SAN) $(HARDEN) $(WARN_C) -ffp-contract=off -fno-math-errno -pthread -I. -MMD -MP
CXXFLAGS += -std=c++17 $(OPT) $(SAN) $(HARDEN) $(WARN) -I. -MMD -MP
# The GPU library is sought beside the programs: build/lib/shoal, or lib/shoal of the PREFIX.
LDFLAGS  += $(SAN) -pthread -Wl,-z,relro,-z,now,-z,noexecstack -Wl,--as-needed -Wl,-rpath,'$$ORIGIN/../lib/shoal'
LIBS      = -lzmq -llmdb -lsodium -lcrypto -lcurl -ljansson -lz -lzstd -lutf8proc -lsystemd -lstdc++ -lm $(BLAS_LIB) $(IPSEC_MB_LIB)

# make BLAS=1: float32 products by OpenBLAS (common/kernel/gemm_blas.c). Not reproducible, and every program that
# computes says so at its start. In a build folder of its own, beside the other.
BLAS      ?= 0
PACKAGES_BLAS = libopenblas-dev
ifeq ($(BLAS),1)
CFLAGS    += -DSHOAL_BLAS
BLAS_LIB   = -lopenblas
endif

# Links are sealed by Intel's library where there is one (common/net/gcm.h).
PACKAGES_IPSEC_MB = $(if $(X86_64),libipsec-mb-dev)
IPSEC_MB_LIB      = $(if $(X86_64),-lIPSec_MB)

# Kernels are compiled once per instruction set and chosen at run time.
OPT_KERNELS ?= -O3
ISA_amx    = $(ISA_avx512bf16) -mamx-tile -mamx-bf16
ISA_avx512bf16 = $(ISA_avx512) -mavx512bf16
ISA_avx512 = $(OPT_KERNELS) -mavx512f -mavx512vl -mavx512bw -mavx512dq -mavx2 -mfma -mprefer-vector-width=512
ISA_avx2   = $(OPT_KERNELS) -mavx2 -mfma
ISA_base   = $(OPT_KERNELS)

# ---- what the programs are made of ----------------------------------------------------------------

COMMON   := $(filter-out common/member/% common/pace/% $(if $(BLAS_LIB),,common/kernel/gemm_blas.c), $(wildcard common/*/*.c))
COMMON_CC := $(wildcard common/*/*.cc)
# Cores: pure, linked by the actors and by the simulator alike. *_shell.c and *_main.c are the far
# side of the wall; the front command and the monitor have no core.
ACTORS    = coordinator trainer parameter-server witness checkpointer data-provider
CORE_DIRS = $(ACTORS:%=actors/%) common/member common/pace common/pace/rounds common/pace/windows common/pace/leases
CORE     := broker/post_office.c $(filter-out %_main.c %_shell.c, $(foreach d,$(CORE_DIRS),$(wildcard $(d)/*.c)))
SHELL_C  := $(foreach d,$(CORE_DIRS),$(wildcard $(d)/*_shell.c)) \
            $(filter-out %_main.c broker/post_office.c, $(wildcard broker/*.c))
# What cores may lean on: pure parts of common. The simulator links these, libcrypto and nothing else.
PURE     := $(patsubst %,common/actor/%.c,cost inbox name outbox) $(wildcard common/wire/*.c common/run/*.c) common/net/endpoint.c \
            common/vector/lanes.c $(patsubst %,common/base/%.c,ensure hash hex interval key plain_name turns)
MAINS    := $(wildcard actors/*/*_main.c) broker/broker_main.c
bin       = $(patsubst shoal-shoal,shoal,$(patsubst shoal-zmq-%,zmq-%,shoal-$(subst _,-,$(patsubst %_main.c,%,$(notdir $(1))))))
BINS     := $(foreach m,$(MAINS),$(B)/bin/$(call bin,$(m)))

LIBRARIES = $(B)/libshells.a $(B)/libcore.a $(B)/libshoal.a
link      = @mkdir -p $(@D) && echo "  LD  $@" && $(CC) $(LDFLAGS) $^

# ---- goals ----------------------------------------------------------------------------------------

.DEFAULT_GOAL = all
include common/compute/cuda/rules.mk systemd/rules.mk tests/rules.mk

all: $(BINS) $(if $(filter 1,$(CUDA)),cuda,no-cuda)  ## Build every program into build/bin

demo: install-deps                              ## Watch four trainers train one model; two are killed (STRATEGY=allreduce, sharded or server; MODE=async)
	@$(MAKE) --no-print-directory -s -j$$(nproc) all
	@$(B)/bin/shoal demo --dir $(B)/demo$(if $(STRATEGY), --strategy $(STRATEGY))$(if $(MODE), --mode $(MODE))

deps:                                           ## List the Debian packages, and which are missing
	@echo "to build and run:  $(PACKAGES)"; $(call find_missing,$(PACKAGES)); \
	echo "           missing:  $${missing:-none}"; \
	echo "for tests also:    $(PACKAGES_TEST)"; $(call find_missing,$(PACKAGES_TEST)); \
	echo "           missing:  $${missing:-none}"

install-deps:                                   ## Install those missing to build and run, with apt
	@$(call install_packages,$(PACKAGES))

format:                                         ## Lay out the source as .clang-format says; CHECK=1 only looks
	@find actors broker common tests -name '*.[ch]' -o -name '*.cc' -o -name '*.cu' -o -name '*.cuh' | \
	xargs clang-format $(if $(CHECK),--dry-run -Werror,-i)

# What make would run to compile each file. Editors (clangd) read it.
compile_commands.json: always                   ## Tell editors how each file is compiled
	@$(MAKE) --no-print-directory -Bn all test-build $(BENCH:%=$(B)/bench/%) $(B)/replay $(B)/numeric/convergence $(B)/numeric/same_bits | sed -nE \
	    's#.*&& (([^&]*) -c (.*\.(c|cc|cu)) -o [^ ]*)$$#{ "directory": "$(CURDIR)", "file": "\3", "command": "\1" }#p' | \
	sort -u | sed '1s/^/[\n/; $$!s/$$/,/; $$s/$$/\n]/' > $@ && echo "$@: $$(grep -c '"file"' $@) commands"

# Prints the symbols that a core uses and that neither the cores nor their pure libraries define.
pure: $(CORE:%.c=$(B)/%.o) $(PURE:%.c=$(B)/%.o)  ## List what the cores take from outside
	@{ nm -f posix $(PURE:%.c=$(B)/%.o) | grep -v ' U '; nm -f posix $(CORE:%.c=$(B)/%.o); } | \
	awk 'NF > 1 { $$2 == "U" ? used[$$1] : own[$$1] } END { for (name in used) if (!(name in own)) print name }' | sort | xargs

help:                                           ## Show this
	@awk -F ':.*## ' '/^[a-z_.-]+:.*## / { printf "  make %-14s %s\n", $$1, $$2 }' $(filter %Makefile %.mk,$(MAKEFILE_LIST))

clean:                                          ## Remove everything built
	rm -rf $(B)

# Packages of Debian 12: those to build and run, and those that only the tests need.
PACKAGES   = gcc g++ make pkg-config libzmq3-dev liblmdb-dev libsodium-dev libssl-dev \
             libcurl4-openssl-dev libjansson-dev zlib1g-dev libzstd-dev libutf8proc-dev libtomlplusplus-dev libsystemd-dev \
             openssl bible-kjv bible-kjv-text jargon-text
PACKAGES  += $(if $(filter 1,$(BLAS)),$(PACKAGES_BLAS)) $(PACKAGES_IPSEC_MB)
PACKAGES_TEST = libcmocka-dev libmsgpack-dev clang clang-format libclang-rt-14-dev strace iproute2 systemd procps zstd

deps-test:
	@$(call install_packages,$(PACKAGES) $(PACKAGES_TEST))

# Those of the packages that are not there, in one line.
find_missing = missing=$$(for p in $(1); do dpkg-query -W -f '$${Status}' $$p 2>/dev/null | grep -q 'ok installed' || printf '%s ' $$p; done)

# Says that it installs what is missing, and does: with sudo when not root. Says nothing if all is there.
define install_packages
$(call find_missing,$(1)); \
if [ -n "$$missing" ]; then \
    echo "installing the missing Debian packages with apt-get: $$missing"; \
    as_root=$$([ $$(id -u) -eq 0 ] || echo sudo); \
    $$as_root apt-get update -qq && \
    DEBIAN_FRONTEND=noninteractive $$as_root apt-get install -y -qq --no-install-recommends $$missing >/dev/null || \
    { echo "could not install them; install by hand what is named above, then try again"; exit 69; }; \
fi
endef

# ---- rules ----------------------------------------------------------------------------------------

$(B)/libshoal.a: $(COMMON:%.c=$(B)/%.o) $(COMMON_CC:%.cc=$(B)/%.o)
$(B)/libcore.a: $(CORE:%.c=$(B)/%.o)
$(B)/libshells.a: $(SHELL_C:%.c=$(B)/%.o)
$(B)/%.a:
	@mkdir -p $(@D) && rm -f $@ && ar rcs $@ $^

define program
$(B)/bin/$(call bin,$(1)): $(1:%.c=$(B)/%.o) $(LIBRARIES)
	$$(link) $$(LIBS) -o $$@
endef
$(foreach m,$(filter-out actors/shoal/% actors/zmq-monitor/%,$(MAINS)),$(eval $(call program,$(m))))
$(B)/bin/shoal: $(patsubst %.c,$(B)/%.o,$(wildcard actors/shoal/*.c actors/shoal/*/*.c)) $(LIBRARIES)
	$(link) $(LIBS) -o $@
$(B)/bin/zmq-monitor: $(patsubst %.c,$(B)/%.o,$(wildcard actors/zmq-monitor/*.c)) $(LIBRARIES)
	$(link) $(LIBS) -o $@
# Loops that only pay as loops of vectors.
$(B)/common/learner/bf16_words.o: CFLAGS += $(OPT_KERNELS)
$(B)/%_amx.o: %_amx.c $(B)/flags
	@mkdir -p $(@D) && echo "  CC  $<" && $(CC) $(CFLAGS) $(ISA_amx) -c $< -o $@
$(B)/%_avx512bf16.o: %_avx512bf16.c $(B)/flags
	@mkdir -p $(@D) && echo "  CC  $<" && $(CC) $(CFLAGS) $(ISA_avx512bf16) -c $< -o $@
$(B)/%_avx512.o: %_avx512.c $(B)/flags
	@mkdir -p $(@D) && echo "  CC  $<" && $(CC) $(CFLAGS) $(ISA_avx512) -c $< -o $@
$(B)/%_avx2.o: %_avx2.c $(B)/flags
	@mkdir -p $(@D) && echo "  CC  $<" && $(CC) $(CFLAGS) $(ISA_avx2) -c $< -o $@
$(B)/%_base.o: %_base.c $(B)/flags
	@mkdir -p $(@D) && echo "  CC  $<" && $(CC) $(CFLAGS) $(ISA_base) -c $< -o $@
$(B)/%.o: %.c $(B)/flags
	@mkdir -p $(@D) && echo "  CC  $<" && $(CC) $(CFLAGS) -c $< -o $@
$(B)/%.o: %.cc $(B)/flags
	@mkdir -p $(@D) && echo "  CXX $<" && $(CXX) $(CXXFLAGS) -c $< -o $@

# The compilers and flags of all objects, which depend on this file: with another SAN=, OPT= or CC= they are built again.
FLAGS := $(CC) $(CFLAGS) $(ISA_base) $(ISA_avx2) $(ISA_amx) $(CXX) $(CXXFLAGS) $(EMULATED) $(NVCC) $(NVCCFLAGS)
ifneq ($(file <$(B)/flags),$(FLAGS))
$(B)/flags: always
endif
$(B)/flags:
	@mkdir -p $(@D) && printf '%s\n' '$(subst ','\'',$(FLAGS))' > $@

# Not those of the builds inside this one (asan, clang ...), which may be under way.
-include $(shell find $(addprefix $(B)/,actors broker common tests nvcc pic emulated) -name '*.d' -type f 2>/dev/null)
.SECONDARY:
.PHONY: all always cuda cuda-check no-cuda demo deps install-deps deps-test format pure help clean install uninstall
