# make help                 what can be made
# make demo                 watch four trainers train one model, two kills included
# make test                 everything that needs no GPU
# make sim SEED=273         replay one simulated run

B        ?= build
CC       ?= gcc
CXX      ?= g++
OPT      ?= -O2 -g
SAN      ?=
WARN      = -Wall -Wextra -Wpedantic -Wconversion -Wshadow -Wundef -Wwrite-strings -Werror
WARN_C    = $(WARN) -Wstrict-prototypes -Wmissing-prototypes -Wold-style-definition
# One order of operations per number, on every compiler: no contraction, no fast-math (DESIGN.md 6).
CFLAGS   += -std=gnu11 -D_GNU_SOURCE $(OPT) $(SAN) $(WARN_C) -ffp-contract=off -fno-math-errno -pthread -I. -MMD -MP
CXXFLAGS += -std=c++17 $(OPT) $(SAN) $(WARN) -I. -MMD -MP
LDFLAGS  += $(SAN) -pthread -Wl,--as-needed
LIBS      = -lczmq -lzmq -llmdb -lsodium -lcrypto -lcurl -ljansson -lsystemd -lstdc++ -lm

# Kernels are compiled once per instruction set and chosen at run time.
ISA_avx512 = -O3 -mavx512f -mavx512vl -mavx512bw -mavx512dq -mavx2 -mfma -mprefer-vector-width=512
ISA_avx2   = -O3 -mavx2 -mfma
ISA_base   = -O3

COMMON   := $(filter-out %_main.c, $(wildcard common/*.c common/*/*.c))
COMMON_CC := $(wildcard common/*/*.cc)
# Cores: pure, linked by the actors and by the simulator alike. *_shell.c and *_main.c are the far
# side of the wall; the front command and the monitor have no core.
ACTORS    = coordinator member trainer witness checkpointer data-provider
CORE     := broker/post_office.c $(filter-out %_main.c %_shell.c, $(foreach a,$(ACTORS),$(wildcard actors/$(a)/*.c)))
SHELL_C  := $(foreach a,$(ACTORS),$(wildcard actors/$(a)/*_shell.c))
# What cores may lean on: pure parts of common. The simulator links these, libcrypto and nothing else.
PURE     := common/actor/outbox.c $(wildcard common/wire/*.c common/run/*.c) common/crypto/hash.c common/ensure.c
MAINS    := $(wildcard actors/*/*_main.c) broker/broker_main.c
bin       = $(patsubst shoal-shoal,shoal,$(patsubst shoal-zmq-%,zmq-%,shoal-$(subst _,-,$(patsubst %_main.c,%,$(notdir $(1))))))
BINS     := $(foreach m,$(MAINS),$(B)/bin/$(call bin,$(m)))
UNIT     := $(patsubst tests/unit/%.c, %, $(wildcard tests/unit/*_test.c))

all: $(BINS)                                    ## Build every program into build/bin

unit: $(UNIT:%=$(B)/unit/%)                     ## Run the unit tests: make unit T=wire_test for one
	@for t in $(or $(T),$(UNIT)); do echo "  $$t"; $(B)/unit/$$t || exit 1; done

help:                                           ## Show this
	@sed -n 's/^\([a-z-]*\):.*## /  make \1\t/p' $(MAKEFILE_LIST)

clean:                                          ## Forget everything built
	rm -rf $(B)

$(B)/libshoal.a: $(COMMON:%.c=$(B)/%.o) $(COMMON_CC:%.cc=$(B)/%.o)
	@mkdir -p $(@D) && rm -f $@ && ar rcs $@ $^
$(B)/libcore.a: $(CORE:%.c=$(B)/%.o)
	@mkdir -p $(@D) && rm -f $@ && ar rcs $@ $^
$(B)/libshells.a: $(SHELL_C:%.c=$(B)/%.o)
	@mkdir -p $(@D) && rm -f $@ && ar rcs $@ $^
LIBRARIES = $(B)/libshells.a $(B)/libcore.a $(B)/libshoal.a
define program
$(B)/bin/$(call bin,$(1)): $(1:%.c=$(B)/%.o) $(LIBRARIES)
	@mkdir -p $$(@D) && echo "  LD  $$@" && $$(CC) $$(LDFLAGS) $$^ $$(LIBS) -o $$@
endef
$(foreach m,$(filter-out actors/shoal/% actors/zmq-monitor/%,$(MAINS)),$(eval $(call program,$(m))))
$(B)/bin/shoal: $(patsubst %.c,$(B)/%.o,$(wildcard actors/shoal/*.c)) $(LIBRARIES)
	@mkdir -p $(@D) && echo "  LD  $@" && $(CC) $(LDFLAGS) $^ $(LIBS) -o $@
$(B)/bin/zmq-monitor: $(patsubst %.c,$(B)/%.o,$(wildcard actors/zmq-monitor/*.c)) $(LIBRARIES)
	@mkdir -p $(@D) && echo "  LD  $@" && $(CC) $(LDFLAGS) $^ $(LIBS) -o $@
$(B)/unit/%: $(B)/tests/unit/%.o $(LIBRARIES)
	@mkdir -p $(@D) && $(CC) $(LDFLAGS) $^ -lcmocka -lmsgpackc $(LIBS) -o $@
$(B)/%_avx512.o: %_avx512.c
	@mkdir -p $(@D) && echo "  CC  $<" && $(CC) $(CFLAGS) $(ISA_avx512) -c $< -o $@
$(B)/%_avx2.o: %_avx2.c
	@mkdir -p $(@D) && echo "  CC  $<" && $(CC) $(CFLAGS) $(ISA_avx2) -c $< -o $@
$(B)/%_base.o: %_base.c
	@mkdir -p $(@D) && echo "  CC  $<" && $(CC) $(CFLAGS) $(ISA_base) -c $< -o $@
$(B)/%.o: %.c
	@mkdir -p $(@D) && echo "  CC  $<" && $(CC) $(CFLAGS) -c $< -o $@
$(B)/%.o: %.cc
	@mkdir -p $(@D) && echo "  CXX $<" && $(CXX) $(CXXFLAGS) -c $< -o $@

-include $(shell find $(B) -name '*.d' 2>/dev/null)
.SECONDARY:
.PHONY: all unit help clean
