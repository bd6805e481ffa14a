# make help                 what can be made
# make demo                 watch four trainers train one model, two kills included
# make test                 everything that needs no GPU; ends with "N passed, N failed"
# make sim SEED=273         replay one simulated run
# make BLAS=1               into build-blas, with float32 products by OpenBLAS; tests are for the build without

B        ?= build$(if $(filter 1,$(BLAS)),-blas)
SAN      ?=
OPT      ?= -O2 -g
ifeq ($(origin CC),default)
CC        = gcc
endif
WARN      = -Wall -Wextra -Wpedantic -Wconversion -Wshadow -Wundef -Wwrite-strings -Werror
WARN_C    = $(WARN) -Wstrict-prototypes -Wmissing-prototypes -Wold-style-definition
# One order of operations per number, on every compiler: no contraction, no fast-math.
CFLAGS   += -std=gnu11 -D_GNU_SOURCE $(OPT) $(SAN) $(WARN_C) -ffp-contract=off -fno-math-errno -pthread -I. -MMD -MP
CXXFLAGS += -std=c++17 $(OPT) $(SAN) $(WARN) -I. -MMD -MP
# The GPU library is sought beside the programs: build/lib/shoal, or lib/shoal of the PREFIX.
LDFLAGS  += $(SAN) -pthread -Wl,--as-needed -Wl,-rpath,'$$ORIGIN/../lib/shoal'
LIBS      = -lczmq -lzmq -llmdb -lsodium -lcrypto -lcurl -ljansson -lsystemd -lstdc++ -lm $(BLAS_LIB)

# make BLAS=1: float32 products by OpenBLAS (common/kernel/gemm_blas.c). Not reproducible, and every program that
# computes says so at its start. A build folder of its own, since nothing else tells the objects apart.
BLAS      ?= 0
PACKAGES_BLAS = libopenblas-dev
ifeq ($(BLAS),1)
CFLAGS    += -DSHOAL_BLAS
BLAS_LIB   = -lopenblas
endif

# Kernels are compiled once per instruction set and chosen at run time.
ISA_avx512bf16 = $(ISA_avx512) -mavx512bf16
ISA_avx512 = -O3 -mavx512f -mavx512vl -mavx512bw -mavx512dq -mavx2 -mfma -mprefer-vector-width=512
ISA_avx2   = -O3 -mavx2 -mfma
ISA_base   = -O3

PREFIX     ?= /usr/local
sysconfdir ?= /etc
DESTDIR    ?=

# What Debian 12 must have: to build and run, and what only the tests want.
PACKAGES   = gcc g++ make pkg-config libzmq3-dev libczmq-dev liblmdb-dev libsodium-dev libssl-dev \
             libcurl4-openssl-dev libjansson-dev libtomlplusplus-dev libsystemd-dev openssl \
             bible-kjv bible-kjv-text jargon-text
PACKAGES  += $(if $(filter 1,$(BLAS)),$(PACKAGES_BLAS))
PACKAGES_TEST = libcmocka-dev libmsgpack-dev clang clang-format libclang-rt-14-dev strace iproute2 systemd procps

COMMON   := $(filter-out common/member/% $(if $(BLAS_LIB),,common/kernel/gemm_blas.c), $(wildcard common/*/*.c))
COMMON_CC := $(wildcard common/*/*.cc)
# Cores: pure, linked by the actors and by the simulator alike. *_shell.c and *_main.c are the far
# side of the wall; the front command and the monitor have no core.
ACTORS    = coordinator trainer witness checkpointer data-provider
CORE_DIRS = $(ACTORS:%=actors/%) common/member
CORE     := broker/post_office.c $(filter-out %_main.c %_shell.c, $(foreach d,$(CORE_DIRS),$(wildcard $(d)/*.c)))
SHELL_C  := $(foreach d,$(CORE_DIRS),$(wildcard $(d)/*_shell.c)) \
            $(filter-out %_main.c broker/post_office.c, $(wildcard broker/*.c))
# What cores may lean on: pure parts of common. The simulator links these, libcrypto and nothing else.
PURE     := common/actor/outbox.c $(wildcard common/wire/*.c common/run/*.c) common/net/endpoint.c \
            $(patsubst %,common/base/%.c,ensure hash hex interval key)
SIM      := $(wildcard tests/sim/*.c)
MAINS    := $(wildcard actors/*/*_main.c) broker/broker_main.c
bin       = $(patsubst shoal-shoal,shoal,$(patsubst shoal-zmq-%,zmq-%,shoal-$(subst _,-,$(patsubst %_main.c,%,$(notdir $(1))))))
BINS     := $(foreach m,$(MAINS),$(B)/bin/$(call bin,$(m)))
UNIT     := $(patsubst tests/unit/%.c, %, $(wildcard tests/unit/*_test.c))
LIVE     := $(patsubst tests/live/%.c, %, $(wildcard tests/live/*_test.c))
FUZZ     := $(filter-out %_main.c, $(wildcard tests/fuzz/*.c)) actors/shoal/model/choices_read.c actors/shoal/local/kill_list.c actors/shoal/run/run_view.c broker/admission.c
FUZZ_SAN  = -fsanitize=fuzzer-no-link,address,undefined -fno-sanitize=vptr,function -fno-sanitize-recover=undefined -fno-omit-frame-pointer
# What drives the cores is not what is looked for: without coverage it is twice as fast, and counts for nothing.
FUZZ_DRIVER = cores core_seeds events honest post_office scratch wire
# Those with threads of their own, or of a library.
TSAN_UNIT = pool_test store_test bulk_test bulk_slow_test bulk_dealer_test bulk_server_test bulk_limits_test tokenizer_test decoder_test provider_test byte_flips_test web_data_test
CHAOS    := chaos matrix
LIVE_PRE := failpoint clock liar            # Loaded with LD_PRELOAD
LIVE_BED := $(filter-out %_test.c $(LIVE_PRE:%=tests/live/%.c), $(wildcard tests/live/*.c))
# A testbed that runs config/demo.
DEMO_BED := $(LIVE_BED) tests/chaos/demo_bed.c $(patsubst %,actors/shoal/%.c,local/demo_setup local/toml_edit model/model_folder)
BENCH    := $(patsubst tests/bench/%.c, %, $(wildcard tests/bench/*_bench.c))

# CUDA: built where there is an nvcc, make CUDA=0 leaves it out, CUDA=1 insists. A library of its own
# that a trainer loads at run time (common/compute/cuda/plugin.h); no program links a GPU library.
NVCC      ?= $(firstword $(shell command -v nvcc) $(wildcard /usr/local/cuda/bin/nvcc))
CUDA      ?= $(if $(NVCC),1,0)
CUDA_ARCH ?= 80 90
CUDA_FLAGS ?=
CUDA_HOME  = $(patsubst %/bin/nvcc,%,$(NVCC))
ifeq ($(CUDA)$(NVCC),1)
$(error CUDA=1, and no nvcc on the PATH or in /usr/local/cuda/bin; name one with NVCC=, or leave CUDA out)
endif
NVCCFLAGS  = -std=c++17 -O3 -I. -Xcompiler -fPIC,-fvisibility=hidden,-Wall -MMD -MP \
             $(foreach a,$(CUDA_ARCH),-gencode arch=compute_$(a),code=sm_$(a)) \
             $(foreach a,$(lastword $(CUDA_ARCH)),-gencode arch=compute_$(a),code=compute_$(a)) $(CUDA_FLAGS)
CUDA_SRC  := $(wildcard common/compute/cuda/*.cu)
CUDA_C    := common/base/fault.c common/base/ensure.c common/model/model_layout.c common/model/rope.c common/kernel/elementary.c
CUDA_LIB   = $(B)/lib/shoal/libshoal-cuda.so
CUDA_LINK  = -cudart static -L$(CUDA_HOME)/lib64 -lcublasLt -Xlinker -rpath,$(CUDA_HOME)/lib64
GPU_TESTS := $(patsubst tests/gpu/%.cu, %, $(wildcard tests/gpu/*_test.cu))
# What the GPU tests ask of the host: no library but libc's, since where a GPU is there may be no other.
GPU_HOST   = $(filter-out common/model/model_config% common/model/recipe.c common/kernel/gemm_blas.c, $(wildcard common/model/*.c common/kernel/*.c common/optimizer/*.c common/compute/*.c)) \
             common/crypto/merkle.c common/vector/layout.c common/vector/tags.c common/base/fault.c common/base/ensure.c \
             tests/gpu/plain_hash.c

all: $(BINS) $(if $(filter 1,$(CUDA)),cuda,no-cuda)  ## Build every program into build/bin

cuda: $(CUDA_LIB)                               ## Build the GPU library (nvcc; CUDA=0 to leave it out)
	@echo "  cuda: compiled and linked by $(NVCC) for $(CUDA_ARCH:%=sm_%); nothing is run on a GPU here"
no-cuda:
	@echo "  cuda: left out, $(if $(NVCC),CUDA=$(CUDA),no nvcc found); trainers use the CPU"

demo: deps                                      ## Watch four trainers train one model; two are killed
	@$(MAKE) --no-print-directory -s -j$$(nproc) all
	@$(B)/bin/shoal demo --dir $(B)/demo

deps:                                           ## List the Debian packages; install those missing
	@$(if $(filter deps,$(MAKECMDGOALS)),echo "to build and run:  $(PACKAGES)"; echo "for tests also:    $(PACKAGES_TEST)";) \
	$(call install_packages,$(PACKAGES))

deps-test:
	@$(call install_packages,$(PACKAGES) $(PACKAGES_TEST))

# Names what is missing, then installs it: with sudo when not root. Says nothing if all is there.
define install_packages
missing=$$(for p in $(1); do dpkg-query -W -f '$${Status}' $$p 2>/dev/null | grep -q 'ok installed' || echo $$p; done); \
if [ -n "$$missing" ]; then \
    echo "missing Debian packages:" $$missing; \
    as_root=$$([ $$(id -u) -eq 0 ] || echo sudo); \
    $$as_root apt-get update -qq && \
    DEBIAN_FRONTEND=noninteractive $$as_root apt-get install -y -qq --no-install-recommends $$missing >/dev/null || \
    { echo "could not install them; install by hand what is named above, then try again"; exit 69; }; \
fi
endef

test: deps-test                                 ## Run all tests; ends with "N passed, N failed"
	@$(MAKE) --no-print-directory -s -j$$(nproc) test-build
	@tests/all.sh $(B)

test-build: all $(UNIT:%=$(B)/unit/%) $(GPU_TESTS:%=$(B)/emulated/%) $(B)/bin/sim $(LIVE:%=$(B)/live/%) $(CHAOS:%=$(B)/chaos/%) \
            $(LIVE_PRE:%=$(B)/live/%.so) $(B)/storage $(B)/live/adversary_test \
            $(B)/live/hostile-trainer $(B)/numeric/honest_audits $(B)/bench/cost_test $(B)/tests/peers/logits \
            $(B)/bench/tokenizer_bench

unit: $(UNIT:%=$(B)/unit/%)                     ## Run the unit tests: make unit T=wire_test for one
	@tests/run.sh $(addprefix $(B)/unit/,$(or $(T),$(UNIT)))

sim: $(B)/bin/sim                               ## Simulate: make sim SEEDS=1000, or replay make sim SEED=7
	@$(if $(SEED),$< -v $(SEED),$< --seeds 1 $(or $(SEEDS),1000))

chaos: all $(CHAOS:%=$(B)/chaos/%) $(LIVE_PRE:%=$(B)/live/%.so) $(B)/live/failpoints_test
chaos:                                          ## Disturb the demo's run: SEED=7 EVENTS=60; MATRIX=1 or FAILPOINTS=1 instead
	@$(if $(MATRIX),$(B)/chaos/matrix $(B)/chaos/matrix.txt, \
	 $(if $(FAILPOINTS),LIVE_LONG=1 $(B)/live/failpoints_test, \
	 $(B)/chaos/chaos))

soak: all $(B)/chaos/chaos $(LIVE_PRE:%=$(B)/live/%.so)  ## Disturb the demo's run for TIME=3600 seconds: does anything grow?
	@SOAK=$(or $(TIME),3600) $(B)/chaos/chaos

mutants:                                        ## Break the cores on purpose; each must be caught
	@tests/sim/mutants.sh

storage: $(B)/storage $(B)/unit/byte_flips_test  ## Kill a ledger's writer, cut its power, flip bits of all that is stored: KILLS=10000 IMAGES=1000000 FLIPS=10000
	@$< $(or $(KILLS),10000) $(or $(IMAGES),1000000) $(or $(FLIPS),10000) $(or $(SEED),1)
	@FLIPS=$(or $(FLIPS),10000) $(B)/unit/byte_flips_test

live: all $(LIVE:%=$(B)/live/%) $(LIVE_PRE:%=$(B)/live/%.so)  ## Run the live tests: make live T=join_test, LIVE_LONG=1
	@tests/run.sh $(addprefix $(B)/live/,$(or $(T),$(LIVE)))

adversaries: all $(B)/live/adversary_test $(B)/live/hostile-trainer  ## One liar among four trainers, RUNS=20 of each kind; resumes
	@tests/adversary/adversaries.sh $(B) $(or $(RUNS),20)

test-peers: test-build                          ## Hold our files against torch, transformers, tokenizers (PyPI)
	@$(peers_python)
	@SHOAL_PYTHON=$(B)/peers/bin/python tests/run.sh $(patsubst %,"% $(B)",$(wildcard tests/peers/*_test.sh))

bench-train: $(B)/bench/train_bench             ## Time a training step: share of the peak, and beside PyTorch from PyPI
	@$<
	@if $(peers_python); then $(B)/peers/bin/python tests/peers/train_torch.py $(B); \
	else echo "PyTorch left out: it could not be installed"; fi

blas-check:                                     ## Hold our products against OpenBLAS's. BLAS=1 builds with them: not reproducible, and not what the tests are for
	@$(if $(BLAS_LIB),echo "blas-check holds our own products against the library's: not with BLAS=1"; exit 64)
	@$(call install_packages,$(PACKAGES_BLAS))
	@$(MAKE) --no-print-directory -s $(B)/numeric/blas_check
	@$(B)/numeric/blas_check

same-bits: $(B)/numeric/same_bits               ## Train both models of the benchmark on every instruction set
	@$<

honest-audits: $(B)/numeric/honest_audits       ## Recompute N=10000 honest results on other instruction sets: all the same?
	@$< $(or $(N),10000)

convergence: $(B)/bin/shoal $(B)/numeric/convergence  ## Train with DisTrO and AdamW, see what limits it; 20 minutes (QUICK=1: one)
	@tests/numeric/convergence.py $(B) $(if $(QUICK),--quick)

# torch and transformers, beside the build: only what is held against them wants them.
peers_python = $(B)/peers/bin/python -c 'import numpy, torch, transformers, tokenizers' 2>/dev/null || \
    { python3 -m venv $(B)/peers && $(B)/peers/bin/pip install -q numpy torch transformers tokenizers; }

fuzz: deps-test fuzz-build                          ## Fuzz every decoder and core until each had TIME=60 s of a core, JOBS=1, T=wire for one; resumes
	@tests/fuzz/run.sh $(B)/fuzz $(or $(TIME),60) $(or $(JOBS),1) $(T)

fuzz-keep: fuzz-build                           ## Add what it found and reaches new code to tests/fuzz/corpus
	@tests/fuzz/keep.sh $(B)/fuzz $(T)

tsan:                                           ## Run the tests with threads under ThreadSanitizer
	@$(MAKE) --no-print-directory -s B=$(B)/tsan CUDA=0 SAN="-fsanitize=thread" OPT="-O1 -g" ISA_base=-O1 ISA_avx2="-O1 -mavx2 -mfma" \
	    $(TSAN_UNIT:%=$(B)/tsan/unit/%)
	@TSAN_OPTIONS=suppressions=tests/tsan.supp:ignore_noninstrumented_modules=1 tests/run.sh $(addprefix $(B)/tsan/unit/,$(or $(T),$(TSAN_UNIT)))

bench: all $(BENCH:%=$(B)/bench/%)              ## Measure against the limits of this machine
	@for b in $(or $(T),$(filter-out train_bench,$(BENCH))); do $(B)/bench/$$b || exit 1; done

gpu-test: $(GPU_TESTS:%=$(B)/gpu/%)             ## On a machine with a GPU: its kernels against the CPU's
	@tests/run.sh $(addprefix $(B)/gpu/,$(or $(T),$(GPU_TESTS)))

gpu-emulated: $(GPU_TESTS:%=$(B)/emulated/%)    ## The same tests on a device emulated by the processor
	@tests/run.sh $(addprefix $(B)/emulated/,$(or $(T),$(GPU_TESTS)))

gpu-bench: $(B)/gpu/train_bench                 ## On a machine with a GPU: tokens/s and MFU beside PyTorch
	@$(B)/gpu/train_bench
	@$(or $(SHOAL_PYTHON),python3) tests/peers/train_torch_gpu.py

pure: $(CORE:%.c=$(B)/%.o)                      ## List what the cores ask of the outside world
	@nm -u $^ | awk '/ U /{print $$2}' | sort -u | tr '\n' ' '; echo

install: all                                    ## Install (PREFIX, DESTDIR, sysconfdir)
	install -d $(DESTDIR)$(PREFIX)/bin $(DESTDIR)$(PREFIX)/lib/systemd/system \
	    $(DESTDIR)$(PREFIX)/lib/sysusers.d $(DESTDIR)$(PREFIX)/lib/tmpfiles.d \
	    $(DESTDIR)$(PREFIX)/share/shoal/demo $(DESTDIR)$(sysconfdir)/shoal
	install -m 755 $(BINS) $(DESTDIR)$(PREFIX)/bin
	$(if $(filter 1,$(CUDA)),install -D -m 755 $(CUDA_LIB) $(DESTDIR)$(PREFIX)/lib/shoal/libshoal-cuda.so)
	for u in systemd/*.in; do sed -e 's#@bindir@#$(PREFIX)/bin#g' -e 's#@sysconfdir@#$(sysconfdir)#g' $$u \
	    > $(B)/$$(basename $${u%.in}) || exit 1; done
	for u in systemd/*.service.in; do install -m 644 $(B)/$$(basename $${u%.in}) $(DESTDIR)$(PREFIX)/lib/systemd/system || exit 1; done
	install -m 644 systemd/*.target $(DESTDIR)$(PREFIX)/lib/systemd/system
	for d in systemd/*.service.d; do install -d $(DESTDIR)$(PREFIX)/lib/systemd/system/$$(basename $$d) && \
	    install -m 644 $$d/* $(DESTDIR)$(PREFIX)/lib/systemd/system/$$(basename $$d) || exit 1; done
	install -m 644 systemd/shoal.sysusers $(DESTDIR)$(PREFIX)/lib/sysusers.d/shoal.conf
	install -m 644 $(B)/shoal.tmpfiles $(DESTDIR)$(PREFIX)/lib/tmpfiles.d/shoal.conf
	install -m 644 config/demo/* $(DESTDIR)$(PREFIX)/share/shoal/demo
	install -m 644 systemd/shoal.env $(DESTDIR)$(PREFIX)/share/shoal

uninstall:                                      ## Remove what install put there
	rm -f $(addprefix $(DESTDIR)$(PREFIX)/bin/,$(notdir $(BINS)))
	rm -rf $(DESTDIR)$(PREFIX)/share/shoal $(DESTDIR)$(PREFIX)/lib/shoal $(DESTDIR)$(PREFIX)/lib/systemd/system/shoal*
	rm -f $(DESTDIR)$(PREFIX)/lib/sysusers.d/shoal.conf $(DESTDIR)$(PREFIX)/lib/tmpfiles.d/shoal.conf

help:                                           ## Show this
	@sed -n 's/^\([a-z-]*\):.*## /  make \1\t/p' $(MAKEFILE_LIST) | expand -t 20

# What .clang-format rules. Everything in C, whoever wrote it.
FORMATTED = $(shell git ls-files '*.c' '*.h' '*.cc' '*.cu' '*.cuh')
format:                                         ## Lay out the source as .clang-format says; CHECK=1 only looks
	@clang-format $(if $(CHECK),--dry-run -Werror,-i) $(FORMATTED)

clean:                                          ## Forget everything built
	rm -rf $(B)

# ---- rules ----------------------------------------------------------------------------------------

LIBRARIES = $(B)/libshells.a $(B)/libcore.a $(B)/libshoal.a
link      = @mkdir -p $(@D) && echo "  LD  $@" && $(CC) $(LDFLAGS) $^

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
# The simulator links the cores and nothing else. If a core learns of ZeroMQ, this line breaks.
$(B)/bin/sim: $(SIM:%.c=$(B)/%.o) $(CORE:%.c=$(B)/%.o) $(PURE:%.c=$(B)/%.o)
	$(link) -lcrypto -o $@
$(B)/unit/%: $(B)/tests/unit/%.o $(LIBRARIES)
	$(link) -lcmocka -lmsgpackc $(LIBS) -o $@
$(B)/unit/bulk_limits_test: $(B)/tests/live/hostile_peer.o
# Every target in one test, and under libFuzzer: clang builds everything once more for it.
$(B)/unit/fuzz_corpus_test $(B)/unit/fuzz_lives_test: $(B)/unit/%: $(B)/tests/unit/%.o $(FUZZ:%.c=$(B)/%.o) $(LIBRARIES)
	$(link) -lcmocka -lmsgpackc $(LIBS) -o $@
fuzz-build:
	@$(MAKE) --no-print-directory -s B=$(B)/fuzz CC=clang CXX=clang++ CUDA=0 OPT="-O1 -g" ISA_base=-O1 ISA_avx2="-O1 -mavx2 -mfma" \
	    SAN="$(FUZZ_SAN)" $(B)/fuzz/fuzzer $(B)/fuzz/replay
ifneq ($(findstring fuzzer,$(SAN)),)
$(FUZZ_DRIVER:%=$(B)/tests/fuzz/%.o): CFLAGS += -fno-sanitize=fuzzer-no-link
$(B)/common/text/%.o: CFLAGS += -fno-sanitize-coverage=trace-cmp
endif
$(B)/fuzzer: $(B)/tests/fuzz/libfuzzer_main.o $(FUZZ:%.c=$(B)/%.o) $(LIBRARIES)
	$(link) -fsanitize=fuzzer -lmsgpackc $(LIBS) -o $@
$(B)/replay: $(B)/tests/fuzz/fuzz_main.o $(FUZZ:%.c=$(B)/%.o) $(LIBRARIES)
	$(link) -lmsgpackc $(LIBS) -o $@
$(B)/tests/fuzz/libfuzzer_main.o: tests/fuzz/fuzz_main.c
	@mkdir -p $(@D) && echo "  CC  $< (libFuzzer)" && $(CC) $(CFLAGS) -DFUZZ_LIBFUZZER -c $< -o $@
$(B)/live/%_test: $(B)/tests/live/%_test.o $(LIVE_BED:%.c=$(B)/%.o) $(LIBRARIES)
	$(link) -lcmocka $(LIBS) -o $@
# The GPU library, its tests, and the same sources for the emulated device.
$(CUDA_LIB): $(CUDA_SRC:%.cu=$(B)/nvcc/%.o) $(CUDA_C:%.c=$(B)/pic/%.o)
	@mkdir -p $(@D) && echo "  LD  $@" && $(NVCC) -shared -Xlinker --no-undefined $^ $(CUDA_LINK) -o $@
$(B)/gpu/%: $(B)/nvcc/tests/gpu/%.o $(CUDA_SRC:%.cu=$(B)/nvcc/%.o) $(B)/libgpu-host.a
	@mkdir -p $(@D) && echo "  LD  $@" && $(NVCC) $^ $(CUDA_LINK) -Xcompiler -pthread -ldl -o $@
$(B)/libgpu-host.a: $(GPU_HOST:%.c=$(B)/%.o)
$(B)/emulated/%_test: $(B)/emulated/tests/gpu/%_test.o $(CUDA_SRC:%.cu=$(B)/emulated/%.o) $(B)/emulated/device.o $(B)/libshoal.a
	@mkdir -p $(@D) && echo "  LD  $@" && $(CXX) $(LDFLAGS) $^ -lcrypto -lm -ldl $(BLAS_LIB) -o $@
# To the bit as on the CPU: no contraction of what is written apart.
$(B)/nvcc/common/compute/cuda/distro%.o $(B)/nvcc/common/compute/cuda/vector.o: NVCCFLAGS += -fmad=false
$(B)/nvcc/%.o: %.cu
	@mkdir -p $(@D) && echo "  NV  $<" && $(NVCC) $(NVCCFLAGS) -MF $(@:.o=.d) -c $< -o $@
$(B)/pic/%.o: %.c
	@mkdir -p $(@D) && echo "  CC  $<" && $(CC) $(CFLAGS) -fPIC -fvisibility=hidden -c $< -o $@
EMULATED = -x c++ -std=c++17 -O2 -g -Wall -Wextra -Werror -Wno-unknown-pragmas -ffp-contract=off -Itests/gpu/emulated -I. -MMD -MP
$(B)/emulated/%.o: %.cu
	@mkdir -p $(@D) && echo "  EMU $<" && $(CXX) $(EMULATED) -c $< -o $@
$(B)/emulated/device.o: tests/gpu/emulated/emulated.cc
	@mkdir -p $(@D) && echo "  EMU $<" && $(CXX) $(EMULATED) -c $< -o $@
$(B)/chaos/matrix: $(patsubst %,$(B)/tests/chaos/%.o,matrix cell) $(LIVE_BED:%.c=$(B)/%.o) $(LIBRARIES)
	$(link) -lcmocka $(LIBS) -o $@
$(B)/chaos/chaos: $(patsubst %,$(B)/tests/chaos/%.o,chaos schedule relay soak growth) $(DEMO_BED:%.c=$(B)/%.o) $(LIBRARIES)
	$(link) -lcmocka $(LIBS) -o $@
# The trainer's own objects; what hostile.c wraps comes to it first.
HOSTILE_WRAPS = trainer_step learner_body compute_new compute_gradient compute_compress compute_again distro_compress \
                blob_store_put compute_residual_hashes compute_residual_of
$(B)/live/hostile-trainer: $(B)/actors/trainer/trainer_main.o $(B)/tests/adversary/hostile.o $(LIBRARIES)
	$(link) $(HOSTILE_WRAPS:%=-Wl,--wrap=%) $(LIBS) -o $@
$(B)/live/adversary_test: $(B)/tests/adversary/adversary_test.o $(LIVE_BED:%.c=$(B)/%.o) $(LIBRARIES)
	$(link) -lcmocka $(LIBS) -o $@
$(B)/live/%.so: tests/live/%.c
	@mkdir -p $(@D) && $(CC) $(CFLAGS) -fPIC -shared $< -ldl -o $@
$(B)/storage: $(patsubst %.c,$(B)/%.o,$(wildcard tests/storage/*.c)) $(LIBRARIES)
	$(link) $(LIBS) -o $@
$(B)/numeric/%: $(B)/tests/numeric/%.o $(LIBRARIES)
	$(link) $(LIBS) -o $@
$(B)/numeric/blas_check: $(B)/tests/numeric/blas_check.o $(B)/libshoal.a
	$(link) -lopenblas -lm -o $@
$(B)/numeric/honest_audits: $(B)/tests/numeric/honest_audits.o $(LIBRARIES)
	$(link) -Wl,--wrap=distro_kernels_best $(LIBS) -o $@
$(B)/numeric/convergence: $(patsubst %,$(B)/tests/numeric/%.o,convergence convergence_trial) $(B)/actors/shoal/model/model_folder.o $(LIBRARIES)
	$(link) $(LIBS) -o $@
$(B)/tests/peers/logits: $(B)/tests/peers/logits.o $(B)/actors/shoal/model/model_folder.o $(LIBRARIES)
	$(link) $(LIBS) -o $@
# The product's objects without CURVE: for cost_bench alone, never installed.
PLAIN = broker/broker_main.c actors/coordinator/coordinator_main.c actors/data-provider/data_provider_main.c \
        actors/trainer/trainer_main.c
PLAIN_WRAPS = zap_secure_client zap_secure_server zap_serve
define plain_program
$(B)/bench/plain/$(call bin,$(1)): $(1:%.c=$(B)/%.o) $(B)/tests/bench/plain_zap.o $(LIBRARIES)
	$$(link) $$(PLAIN_WRAPS:%=-Wl,--wrap=%) $$(LIBS) -o $$@
endef
$(foreach m,$(PLAIN),$(eval $(call plain_program,$(m))))
$(B)/bench/crypto_counts.so: tests/bench/crypto_counts.c tests/bench/crypto_counts.h
	@mkdir -p $(@D) && $(CC) $(CFLAGS) -fPIC -shared $< -ldl -o $@
$(B)/bench/cost_bench: $(patsubst %,$(B)/tests/bench/%.o,cost_bench cost_run plain_zap) $(DEMO_BED:%.c=$(B)/%.o) $(LIBRARIES) \
                       | $(foreach m,$(PLAIN),$(B)/bench/plain/$(call bin,$(m))) $(B)/bench/crypto_counts.so
	$(link) $(PLAIN_WRAPS:%=-Wl,--wrap=%) -lcmocka $(LIBS) -o $@
$(B)/bench/cost_test: $(patsubst %,$(B)/tests/bench/%.o,cost_test cost_run) $(DEMO_BED:%.c=$(B)/%.o) $(LIBRARIES) \
                      | $(B)/bench/crypto_counts.so
	$(link) -lcmocka $(LIBS) -o $@
$(B)/bench/%: $(B)/tests/bench/%.o $(LIBRARIES)
	$(link) -lmsgpackc $(LIBS) -o $@
$(B)/%_avx512bf16.o: %_avx512bf16.c
	@mkdir -p $(@D) && echo "  CC  $<" && $(CC) $(CFLAGS) $(ISA_avx512bf16) -c $< -o $@
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

-include $(shell find $(B) -name '*.d' -type f 2>/dev/null)
.SECONDARY:
.PHONY: all format chaos soak storage cuda no-cuda gpu-test gpu-emulated gpu-bench demo deps deps-test test test-build test-peers unit sim mutants live fuzz fuzz-build tsan bench bench-train blas-check same-bits convergence pure install uninstall help clean fuzz-keep adversaries honest-audits
