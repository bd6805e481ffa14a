# What the tests are, what each is made of, and the goals that run them. tests/all.sh is the order of make test.

# ---- what there is --------------------------------------------------------------------------------

# The simulator, and a pace of its own: its tables of paces and frames take the place of the product's.
SIM      := $(wildcard tests/sim/*.c tests/pace/*.c)
SIM_OWN   = common/pace/paces.c common/pace/member_paces.c common/wire/wire_more.c
SIM_CORE  = $(filter-out $(SIM_OWN), $(CORE) $(PURE))
UNIT     := $(patsubst tests/unit/%.c, %, $(wildcard tests/unit/*_test.c))
# make test runs all of them under ASan + UBSan, and these, which compute, as the product is built, too.
UNIT_AS_BUILT = adamw_test apply_test batch_test bf16_words_test combination_test dct_test decoder_test distro_kernels_test distro_test elementary_test gemm_test gradient_test group_test kernels_test lanes_test learner_memory_test leases_learner_test merkle_test model_test optimizer_test payload_test pool_test products_test rope_test selection_test sgd_test solo_test windows_learner_test
LIVE     := $(patsubst tests/live/%.c, %, $(wildcard tests/live/*_test.c))
FUZZ     := $(filter-out %_main.c, $(wildcard tests/fuzz/*.c)) actors/shoal/model/choices_read.c actors/shoal/local/kill_list.c actors/shoal/run/run_view.c broker/admission.c
# Code that only drives the cores is built without coverage: it is twice as fast, and the fuzzer seeks no edges in it.
FUZZ_DRIVER = cores core_kinds core_process core_seeds events honest post_office scratch wire
# Tests with threads of their own, or of a library.
TSAN_UNIT = pool_test store_test store_shares_test saver_test learner_save_test hash_beside_test bulk_test bulk_slow_test bulk_line_test bulk_server_test bulk_limits_test share_fetch_test tokenizer_test decoder_test provider_test byte_flips_test web_data_test group_test group_links_test group_handshakes_test group_questions_test async_run_test
CHAOS    := chaos matrix churn
LIVE_PRE := failpoint clock liar step_times            # Loaded with LD_PRELOAD
LIVE_BED := $(filter-out %_test.c $(LIVE_PRE:%=tests/live/%.c), $(wildcard tests/live/*.c))
# A testbed that runs config/demo.
DEMO_BED := $(LIVE_BED) tests/chaos/demo_bed.c $(patsubst %,actors/shoal/%.c,local/demo_setup local/run_files local/toml_edit model/model_folder)
BENCH    := $(patsubst tests/bench/%.c, %, $(wildcard tests/bench/*_bench.c))

GPU_TESTS := $(patsubst tests/gpu/%.cu, %, $(wildcard tests/gpu/*_test.cu))
# The GPU tests link no library but libc's: a machine with a GPU may have no other.
GPU_HOST   = $(filter-out common/model/model_config% common/model/recipe.c common/kernel/gemm_blas.c, $(wildcard common/model/*.c common/kernel/*.c common/optimizer/*.c common/compute/*.c)) \
             common/crypto/merkle.c common/vector/layout.c common/vector/state_cut.c common/vector/tags.c common/vector/lanes.c common/base/interval.c common/base/fault.c common/base/ensure.c \
             tests/gpu/plain_hash.c

# A build in a folder of its own, with what a sanitizer needs: +$(call sanitized,FOLDER,ITS FLAGS) GOALS
# Without the + make does not see that this is a make, and it compiles one file at a time.
ASAN      = -fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer
TSAN      = -fsanitize=thread
FUZZ_SAN  = -fsanitize=fuzzer-no-link,address,undefined -fno-sanitize=vptr,function -fno-sanitize-recover=undefined -fno-omit-frame-pointer
sanitized = @$(MAKE) --no-print-directory -s B=$(B)/$(1) SAN="$(2)" CUDA=0 OPT="-Og -g1" OPT_KERNELS=-O1

# The programs of a folder that T names, or all: $(call asked,FOLDER,ALL)
asked     = $(addprefix $(B)/$(1)/,$(or $(T),$(2)))

# ---- goals ----------------------------------------------------------------------------------------

test: deps-test                                 ## Run all tests; ends with "N passed, N failed"
	@$(MAKE) --no-print-directory -s -j$$(nproc) live-programs
	@UNIT_AS_BUILT='$(UNIT_AS_BUILT)' tests/all.sh $(B)

test-build: all test-programs $(UNIT:%=$(B)/unit/%)
# What waits begins when these are there. The rest is built beside it.
live-programs: $(BINS) $(LIVE:%=$(B)/live/%) $(CHAOS:%=$(B)/chaos/%) $(LIVE_PRE:%=$(B)/live/%.so) \
            $(B)/live/adversary_test $(B)/live/hostile-trainer $(B)/bench/cost_test \
            $(B)/tests/peers/logits $(B)/bench/tokenizer_bench $(B)/example/allreduce $(B)/example/world
test-programs: live-programs $(UNIT_AS_BUILT:%=$(B)/unit/%) $(GPU_TESTS:%=$(B)/emulated/%) $(B)/bin/sim $(B)/storage \
            $(B)/numeric/honest_audits $(BENCH:%=$(B)/bench/%)

unit: $(call asked,unit,$(UNIT))                ## Run the unit tests: make unit T=wire_test for one
	@tests/run.sh $(call asked,unit,$(UNIT))

sim: $(B)/bin/sim                               ## Simulate: make sim SEEDS=1000, or replay make sim SEED=7
	@$(if $(SEED),$< -v $(SEED),$< --seeds 1 $(or $(SEEDS),1000))

chaos: all $(CHAOS:%=$(B)/chaos/%) $(LIVE_PRE:%=$(B)/live/%.so) $(B)/live/failpoints_test
chaos:                                          ## Disturb the demo's run: SEED=7 EVENTS=60, or MATRIX=1 STRATEGY=server (async: not in step), SERVERS=1, CUT=1, FAILPOINTS=1
	@$(if $(SERVERS),tests/chaos/servers.sh $(B), $(if $(CUT),tests/chaos/cut.sh $(B), $(if $(MATRIX),$(B)/chaos/matrix $(if $(STRATEGY),--strategy=$(STRATEGY)) $(B)/chaos/matrix$(STRATEGY:%=-%).txt, \
	 $(if $(FAILPOINTS),LIVE_LONG=1 $(B)/live/failpoints_test, \
	 $(B)/chaos/chaos))))

soak: all $(CHAOS:%=$(B)/chaos/%) $(LIVE_PRE:%=$(B)/live/%.so)  ## Disturb a run for TIME=3600 seconds: does anything grow? STRATEGY=allreduce, sharded, server or async
	@$(SOAK_$(or $(STRATEGY),distro))
SOAK_distro    = SOAK=$(or $(TIME),3600) $(B)/chaos/chaos
SOAK_allreduce = $(B)/chaos/churn $(or $(TIME),3600) $(SEED)
SOAK_sharded   = $(B)/chaos/churn $(or $(TIME),3600) $(or $(SEED),1) sharded
SOAK_server    = $(B)/chaos/churn $(or $(TIME),3600) $(or $(SEED),1) server
SOAK_async     = $(B)/chaos/churn $(or $(TIME),3600) $(or $(SEED),1) async

mutants:                                        ## Break the cores on purpose; each must be caught
	@tests/sim/mutants.sh

storage: $(B)/storage $(B)/unit/byte_flips_test  ## Kill a ledger's writer, cut power, flip bits: KILLS=10000 IMAGES=1000000 FLIPS=10000
	@$< $(or $(KILLS),10000) $(or $(IMAGES),1000000) $(or $(FLIPS),10000) $(or $(SEED),1)
	@FLIPS=$(or $(FLIPS),10000) $(B)/unit/byte_flips_test

live: all $(call asked,live,$(LIVE)) $(LIVE_PRE:%=$(B)/live/%.so)  ## Run the live tests: make live T=join_test, LIVE_LONG=1
	@tests/run.sh $(call asked,live,$(LIVE))

adversaries: all $(B)/live/adversary_test $(B)/live/hostile-trainer  ## One liar among four trainers, RUNS=20 of each kind; resumes
	@tests/adversary/adversaries.sh $(B) $(or $(RUNS),20)

attacks: all $(B)/live/attack_test $(B)/live/hostile-trainer $(B)/live/hostile-provider  ## One guest attacks lines, processors, deadlines: A="gorge probes" for these
	@$(B)/live/attack_test $(A)

greedy: all $(B)/live/greedy                    ## What a peer costs that sends all it may: every kind, role and reader, half an hour. T="ASK PING"
	@$(B)/live/greedy $(T)

test-peers: test-build                          ## Hold our files against torch, transformers, tokenizers, lm_eval (PyPI)
	@$(peers_python)
	@SHOAL_PYTHON=$(abspath $(B)/peers/bin/python) tests/run.sh $(patsubst %,"% $(B)",$(wildcard tests/peers/*_test.sh))

bench-train: $(B)/bench/train_bench             ## Time a training step: share of the peak, and beside PyTorch from PyPI
	@$<
	@if $(peers_python); then $(B)/peers/bin/python tests/peers/train_torch.py $(B); \
	else echo "PyTorch left out: it could not be installed"; fi

bench-group: $(B)/bench/group_bench $(B)/bench/line_bench $(B)/bench/ask_bench  ## Time sums of a group beside gloo's (libgloo-dev) and bare TCP, over a long line, and questions: TURNS=5 W=2
	@$< $(or $(TURNS),5) $(W)
	@$(B)/bench/line_bench
	@$(B)/bench/ask_bench $(or $(TURNS),5)

bench-rounds: all                               ## What a round costs with 2 to 64 trainers: TIME=15 T="2 16"
	@tests/bench/rounds_curve.sh $(B) $(or $(TIME),15) $(T)

bench-audits: all                               ## What recomputing results costs a run: TIME=15 TURNS=5 T="25 50"
	@tests/bench/audits.sh $(B) $(or $(TIME),15) $(or $(TURNS),5) $(T)

bench-runs: all                                 ## A run's tokens/s by those of one trainer alone: TURNS=3 T="demo 8m 134m"
	@tests/bench/run_ratio.sh $(B) $(or $(TURNS),3) $(T)

bench-memory: all                               ## What copies of shares in memory cost, and save when trainers die: T="cost disk goodput resume"
	@for mode in $(or $(T),cost goodput); do tests/bench/memory_saves.sh $(B) $$mode || exit; done

bench-servers: all                              ## Tokens/s of two trainers with two parameter servers by those of allreduce: TURNS=3
	@tests/bench/servers.sh $(B) $(or $(TURNS),3)

bench-stopped: all $(B)/bench/quota_of          ## What a trainer that stands still costs the others, with servers not in step: TURNS=5
	@tests/bench/stopped.sh $(B) $(or $(TURNS),5)

bench-deaths: all $(B)/bench/deaths_bench $(B)/live/step_times.so  ## Time what a death costs a window: sums, cut links, SIGSTOP, the coordinator, all. T="sums cuts"
	@$(B)/bench/deaths_bench $(T)

bench-ddp: $(B)/bench/ddp_bench                 ## Time trainers that sum gradients beside one alone, servers and PyTorch's DDP: MEMBERS=2 SERVERS=2 BATCH=8 TURNS=5
	@python=$(or $(SHOAL_PYTHON),$(B)/peers/bin/python); \
	$(if $(SHOAL_PYTHON),true,{ $(peers_python); }) || python=python3; \
	$$python tests/peers/ddp_torch.py $(B) --members $(or $(MEMBERS),2) --servers $(or $(SERVERS),2) --batch $(or $(BATCH),8) --turns $(or $(TURNS),5)

blas-check:                                     ## Hold our products against OpenBLAS's (BLAS=1 builds with them)
	@$(if $(BLAS_LIB),echo "blas-check holds our own products against the library's: not with BLAS=1"; exit 64)
	@$(call install_packages,$(PACKAGES_BLAS))
	@$(MAKE) --no-print-directory -s $(B)/numeric/blas_check
	@$(B)/numeric/blas_check

same-bits: $(B)/numeric/same_bits $(B)/unit/windows_learner_test ## Train on every instruction set, alone and in groups
	@SAME_BITS=20 $(B)/unit/windows_learner_test 2>/dev/null
	@$<

honest-audits: $(B)/numeric/honest_audits       ## Recompute N=10000 honest results on other instruction sets: all the same?
	@$< $(or $(N),10000)

convergence: $(B)/bin/shoal $(B)/numeric/convergence  ## Train with DisTrO and AdamW, see what limits it; 20 minutes (QUICK=1: one)
	@tests/numeric/convergence.py $(B) $(if $(QUICK),--quick)

# torch, transformers and others, in a folder beside the build: only the tests that compare with them need them.
peers_python = $(B)/peers/bin/python -c 'import numpy, torch, transformers, tokenizers, tensorboard, accelerate, lm_eval' 2>/dev/null || \
    { python3 -m venv $(B)/peers && $(B)/peers/bin/pip install -q -U pip && $(B)/peers/bin/pip install -q numpy torch transformers tokenizers tensorboard accelerate lm_eval; }

fuzz: deps-test fuzz-build                          ## Fuzz every decoder and core, TIME=60 s each, JOBS=1, T=wire for one; resumes
	@tests/fuzz/run.sh $(B)/fuzz $(or $(TIME),60) $(or $(JOBS),1) $(T)

fuzz-keep: fuzz-build                           ## Add what it found and reaches new code to tests/fuzz/corpus
	@tests/fuzz/keep.sh $(B)/fuzz $(T)

asan:                                           ## Run the unit tests and SEEDS=300 under ASan + UBSan
	@$(MAKE) --no-print-directory -s -j$$(nproc) asan-build
	@ASAN_OPTIONS=detect_leaks=1 tests/run.sh $(call asked,asan/unit,$(UNIT))
	@$(B)/asan/bin/sim --seeds 1 $(or $(SEEDS),300)
# Optimised kernels: at -O1 the tests that compute take ten to twenty times as long under ASan.
asan-build:
	+$(call sanitized,asan,$(ASAN)) OPT_KERNELS=-O2 $(call asked,asan/unit,$(UNIT)) $(B)/asan/bin/sim

# The simulator by another compiler and with other optimizations: its traces must be the same.
clang-build:
	@$(MAKE) --no-print-directory -s B=$(B)/clang CC=clang CXX=clang++ OPT=-O1 $(B)/clang/bin/sim

tsan:                                           ## Run the tests with threads under ThreadSanitizer
	@$(MAKE) --no-print-directory -s -j$$(nproc) tsan-build
	@TSAN_OPTIONS=suppressions=tests/tsan.supp:ignore_noninstrumented_modules=1 tests/run.sh $(call asked,tsan/unit,$(TSAN_UNIT))
tsan-build:
	+$(call sanitized,tsan,$(TSAN)) $(call asked,tsan/unit,$(TSAN_UNIT))
# For make test: without the parts of the product that its three tests do not link.
tsan-short-build:
	+$(call sanitized,tsan,$(TSAN)) LIBRARIES=$(B)/tsan/libparts.a $(call asked,tsan/unit,)
TSAN_PARTS = $(wildcard $(patsubst %,common/%/*.c,base bulk crypto net wire)) common/actor/worker.c common/vector/state_cut.c common/vector/share_list.c common/kernel/pool.c
$(B)/libparts.a: $(TSAN_PARTS:%.c=$(B)/%.o)

example: $(B)/example/allreduce $(B)/example/world ## Build the examples: an all-reduce of your own buffer, state for any number of workers

bench: all $(call asked,bench,$(BENCH))         ## Measure against the limits of this machine
	@bad=; for b in $(or $(T),$(filter-out train_bench ddp_bench,$(BENCH))); do $(B)/bench/$$b || bad="$$bad $$b"; done; \
	[ -z "$$bad" ] || { echo "failed, or missed its aim:$$bad"; exit 1; }

gpu-test: $(call asked,gpu,$(GPU_TESTS))        ## On a machine with a GPU: its kernels against the CPU's
	@tests/run.sh $(call asked,gpu,$(GPU_TESTS))

gpu-emulated: $(call asked,emulated,$(GPU_TESTS))  ## The same tests on a device emulated by the processor
	@tests/run.sh $(call asked,emulated,$(GPU_TESTS))

gpu-bench: $(B)/gpu/train_bench                 ## On a machine with a GPU: tokens/s and MFU beside PyTorch
	@$(B)/gpu/train_bench
	@$(or $(SHOAL_PYTHON),python3) tests/peers/train_torch_gpu.py

# ---- rules ----------------------------------------------------------------------------------------

# The simulator links the cores and nothing else. If a core learns of ZeroMQ, this line breaks.
$(B)/bin/sim: $(SIM:%.c=$(B)/%.o) $(SIM_CORE:%.c=$(B)/%.o)
	$(link) -lcrypto -o $@
# The tests' own code compiles in a third of the time, and runs for a moment. Simulator, fuzzers and what measures
# are optimised as the product is. Undefined behaviour is looked for in the product alone.
$(B)/tests/unit/%.o $(B)/tests/live/%.o $(B)/tests/chaos/%.o: CFLAGS += -Og -g1$(if $(findstring undefined,$(SAN)), -fno-sanitize=undefined)
# Gold, where it is, links in a third of ld's time.
$(B)/unit/% $(B)/live/%_test: LDFLAGS += $(GOLD)
GOLD := $(if $(shell command -v ld.gold),-fuse-ld=gold)
$(B)/unit/%: $(B)/tests/unit/%.o $(LIBRARIES)
	$(link) -lcmocka -lmsgpackc $(LIBS) -o $@
# Counted where servers meet their sockets.
BULK_COUNTED = $(patsubst %,$(B)/unit/%_test,bulk bulk_server bulk_limits bulk_slow byte_flips)
$(BULK_COUNTED): $(B)/tests/unit/bulk_counts.o
BULK_WRAPS = bulk_server_new bulk_line_recv bulk_line_put bulk_line_cut
$(BULK_COUNTED): LDFLAGS += $(BULK_WRAPS:%=-Wl,--wrap=%)
$(B)/unit/gate_test: LDFLAGS += -Wl,--wrap=curve_of_key
# Every target in one test, and under libFuzzer: clang builds everything once more for it.
$(B)/unit/fuzz_corpus_test $(B)/unit/fuzz_lives_test: $(B)/unit/%: $(B)/tests/unit/%.o $(FUZZ:%.c=$(B)/%.o) $(LIBRARIES)
	$(link) -lcmocka -lmsgpackc $(LIBS) -o $@
fuzz-build:
	+$(call sanitized,fuzz,$(FUZZ_SAN)) CC=clang CXX=clang++ $(B)/fuzz/fuzzer $(B)/fuzz/replay
ifneq ($(findstring fuzzer,$(SAN)),)
$(FUZZ_DRIVER:%=$(B)/tests/fuzz/%.o): CFLAGS += -fno-sanitize=fuzzer-no-link
$(B)/common/text/%.o: CFLAGS += -fno-sanitize-coverage=trace-cmp
else ifneq ($(SAN),)
# A header of templates, in half the time; it reads a few small files.
$(B)/common/config/toml_shim.o: CXXFLAGS += -O0
# What hashes the leaves is a kernel, too: at -O1 it was half of a test's time.
$(B)/common/crypto/leaf_pair.o: CFLAGS += $(OPT_KERNELS)
# The address sanitizer sees nothing of what assembly and masked stores do, and it took most of the time of the tests that
# train. gemm_test and kernels_test look beyond the end of what kernels are given, on every instruction set.
ifneq ($(findstring address,$(SAN)),)
$(B)/common/kernel/kernels_%.o: override SAN =
endif
endif
$(B)/fuzzer: $(B)/tests/fuzz/libfuzzer_main.o $(FUZZ:%.c=$(B)/%.o) $(LIBRARIES)
	$(link) -fsanitize=fuzzer -lmsgpackc $(LIBS) -o $@
$(B)/replay: $(B)/tests/fuzz/fuzz_main.o $(FUZZ:%.c=$(B)/%.o) $(LIBRARIES)
	$(link) -lmsgpackc $(LIBS) -o $@
$(B)/tests/fuzz/libfuzzer_main.o: tests/fuzz/fuzz_main.c $(B)/flags
	@mkdir -p $(@D) && echo "  CC  $< (libFuzzer)" && $(CC) $(CFLAGS) -DFUZZ_LIBFUZZER -c $< -o $@
$(B)/live/%_test: $(B)/tests/live/%_test.o $(LIVE_BED:%.c=$(B)/%.o) $(LIBRARIES)
	$(link) -lcmocka $(LIBS) -o $@
# What runs on a GPU, and the same sources for the emulated device.
$(B)/gpu/%: $(B)/nvcc/tests/gpu/%.o $(CUDA_SRC:%.cu=$(B)/nvcc/%.o) $(B)/libgpu-host.a
	@mkdir -p $(@D) && echo "  LD  $@" && $(NVCC) $^ $(CUDA_LINK) -Xcompiler -pthread -ldl -o $@
$(B)/libgpu-host.a: $(GPU_HOST:%.c=$(B)/%.o)
$(B)/emulated/%_test: $(B)/emulated/tests/gpu/%_test.o $(CUDA_SRC:%.cu=$(B)/emulated/%.o) $(B)/emulated/device.o $(B)/libshoal.a
	@mkdir -p $(@D) && echo "  LD  $@" && $(CXX) $(LDFLAGS) $^ -lcrypto -lm -ldl $(BLAS_LIB) -o $@
# At -O1 the templates compile in four fifths of the time, and the tests take a twentieth longer than at -O2.
EMULATED = -x c++ -std=c++17 -O1 -g1 -Wall -Wextra -Werror -Wno-unknown-pragmas -ffp-contract=off -Itests/gpu/emulated -I. -MMD -MP
$(B)/emulated/%.o: %.cu $(B)/flags
	@mkdir -p $(@D) && echo "  EMU $<" && $(CXX) $(EMULATED) -c $< -o $@
$(B)/emulated/device.o: tests/gpu/emulated/emulated.cc $(B)/flags
	@mkdir -p $(@D) && echo "  EMU $<" && $(CXX) $(EMULATED) -c $< -o $@
$(B)/chaos/matrix: $(patsubst %,$(B)/tests/chaos/%.o,matrix cell alone) $(LIVE_BED:%.c=$(B)/%.o) $(LIBRARIES)
	$(link) -lcmocka $(LIBS) -o $@
$(B)/chaos/churn: $(patsubst %,$(B)/tests/chaos/%.o,churn alone soak growth) $(LIVE_BED:%.c=$(B)/%.o) $(LIBRARIES)
	$(link) -lcmocka $(LIBS) -o $@
$(B)/chaos/chaos: $(patsubst %,$(B)/tests/chaos/%.o,chaos schedule relay soak growth) $(DEMO_BED:%.c=$(B)/%.o) $(LIBRARIES)
	$(link) -lcmocka $(LIBS) -o $@
# The trainer's own objects; what hostile.c wraps comes to it first.
HOSTILE_WRAPS = trainer_step learner_body compute_new compute_gradient distro_compress blob_store_put \
                result_make result_gradient_again result_again result_hashes result_residual bulk_answer
$(B)/live/hostile-trainer: $(B)/actors/trainer/trainer_main.o $(patsubst %,$(B)/tests/adversary/%.o,hostile attacks) $(LIBRARIES)
	$(link) $(HOSTILE_WRAPS:%=-Wl,--wrap=%) $(LIBS) -o $@
$(B)/live/hostile-provider: $(B)/actors/data-provider/data_provider_main.o $(B)/tests/adversary/hostile_provider.o $(LIBRARIES)
	$(link) -Wl,--wrap=bulk_answer $(LIBS) -o $@
$(B)/live/attack_test: $(B)/tests/adversary/attack_test.o $(LIVE_BED:%.c=$(B)/%.o) $(LIBRARIES)
	$(link) -lcmocka $(LIBS) -o $@
$(B)/live/adversary_test: $(B)/tests/adversary/adversary_test.o $(LIVE_BED:%.c=$(B)/%.o) $(LIBRARIES)
	$(link) -lcmocka $(LIBS) -o $@
$(B)/live/greedy: $(B)/tests/adversary/greedy.o $(LIVE_BED:%.c=$(B)/%.o) $(LIBRARIES)
	$(link) -lcmocka $(LIBS) -o $@
$(B)/live/failpoint.so: tests/live/failpoints.def
$(B)/live/%.so: tests/live/%.c $(B)/flags
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
$(B)/bench/crypto_counts.so: tests/bench/crypto_counts.c tests/bench/crypto_counts.h $(B)/flags
	@mkdir -p $(@D) && $(CC) $(CFLAGS) -fPIC -shared $< -ldl -o $@
$(B)/bench/cost_bench: $(patsubst %,$(B)/tests/bench/%.o,cost_bench cost_run plain_zap) $(DEMO_BED:%.c=$(B)/%.o) $(LIBRARIES) \
                       | $(foreach m,$(PLAIN),$(B)/bench/plain/$(call bin,$(m))) $(B)/bench/crypto_counts.so
	$(link) $(PLAIN_WRAPS:%=-Wl,--wrap=%) -lcmocka $(LIBS) -o $@
$(B)/bench/cost_test: $(patsubst %,$(B)/tests/bench/%.o,cost_test cost_run) $(DEMO_BED:%.c=$(B)/%.o) $(LIBRARIES) \
                      | $(B)/bench/crypto_counts.so
	$(link) -lcmocka $(LIBS) -o $@
$(B)/bench/line_bench $(B)/bench/ask_bench: $(B)/bench/%: $(B)/tests/bench/%.o $(B)/tests/bench/group_member.o $(LIBRARIES)
	$(link) $(LIBS) -o $@
$(B)/bench/quota_of: $(B)/tests/bench/quota_of.o $(B)/actors/shoal/local/quota.o $(LIBRARIES)
	$(link) $(LIBS) -o $@
$(B)/example/%: $(B)/tests/example/%.o $(LIBRARIES)
	$(link) $(LIBS) -o $@
# gloo, where it is installed (libgloo-dev), to compare with.
GLOO := $(wildcard /usr/include/gloo/allreduce.h)
$(B)/bench/group_bench: $(patsubst %,$(B)/tests/bench/%.o,group_bench group_member $(if $(GLOO),gloo_peer)) $(LIBRARIES)
	$(link) $(if $(GLOO),-lgloo) -ldl $(LIBS) -o $@
$(B)/bench/deaths_bench: $(patsubst %,$(B)/tests/bench/%.o,deaths_bench group_deaths group_member $(if $(GLOO),gloo_peer)) \
                         $(LIVE_BED:%.c=$(B)/%.o) $(LIBRARIES) | $(B)/live/step_times.so
	$(link) $(if $(GLOO),-lgloo) -lcmocka -ldl $(LIBS) -o $@
$(B)/bench/ddp_bench: LDFLAGS += -Wl,--wrap=tcp_tune
$(B)/bench/%: $(B)/tests/bench/%.o $(LIBRARIES)
	$(link) -lmsgpackc $(LIBS) -o $@

.PHONY: test test-build live-programs test-programs unit asan asan-build tsan tsan-build tsan-short-build clang-build sim mutants storage live adversaries attacks greedy chaos soak test-peers \
        example fuzz fuzz-build fuzz-keep bench bench-train bench-group bench-rounds bench-audits bench-runs bench-memory bench-servers bench-stopped bench-deaths bench-ddp blas-check same-bits honest-audits convergence gpu-test gpu-emulated gpu-bench
