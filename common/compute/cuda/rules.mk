# The library for GPUs: built where there is an nvcc, make CUDA=0 leaves it out, CUDA=1 insists. A trainer loads
# it at run time (plugin.h); no program links a GPU library.
ifeq ($(origin NVCC),undefined)
NVCC      := $(firstword $(shell command -v nvcc) $(wildcard /usr/local/cuda/bin/nvcc))
endif
CUDA      ?= $(if $(NVCC),1,0)
# The least one first: it is what all are compiled from, once, and what later ones run.
CUDA_ARCH ?= 80 90
CUDA_FLAGS ?=
CUDA_HOME  = $(patsubst %/bin/nvcc,%,$(NVCC))
ifeq ($(CUDA)$(NVCC),1)
$(error CUDA=1, and no nvcc on the PATH or in /usr/local/cuda/bin; name one with NVCC=, or leave CUDA out)
endif
comma     := ,
words_by_comma = $(subst $() ,$(comma),$(strip $(1)))
NVCCFLAGS  = -std=c++17 -O3 -I. -Xcompiler -fPIC,-fvisibility=hidden,-Wall -MMD -MP \
             -gencode arch=compute_$(firstword $(CUDA_ARCH)),code=[$(call words_by_comma,$(CUDA_ARCH:%=sm_%) compute_$(firstword $(CUDA_ARCH)))] $(CUDA_FLAGS)
CUDA_SRC  := $(wildcard common/compute/cuda/*.cu)
CUDA_C    := common/base/fault.c common/base/ensure.c common/model/model_layout.c common/model/rope.c common/kernel/elementary.c
CUDA_LIB   = $(B)/lib/shoal/libshoal-cuda.so
CUDA_LINK  = -cudart static -L$(CUDA_HOME)/lib64 -lcublasLt -Xlinker -rpath,$(CUDA_HOME)/lib64

cuda: $(CUDA_LIB)                               ## Build the GPU library (nvcc; CUDA=0 to leave it out)
	@echo "  cuda: compiled and linked by $(NVCC) for $(CUDA_ARCH:%=sm_%); nothing is run on a GPU here"
# The device's part of each file, by nvcc. No library: its host's part is compiled for the emulated device, and takes
# nvcc a minute more.
cuda-check:
	$(if $(NVCC),+@$(MAKE) --no-print-directory -s $(CUDA_SRC:%.cu=$(B)/nvcc/%.ptx),@echo "# SKIP no nvcc found")
no-cuda:
	@echo "  cuda: left out, $(if $(NVCC),CUDA=$(CUDA),no nvcc found); trainers use the CPU"

$(CUDA_LIB): $(CUDA_SRC:%.cu=$(B)/nvcc/%.o) $(CUDA_C:%.c=$(B)/pic/%.o)
	@mkdir -p $(@D) && echo "  LD  $@" && $(NVCC) -shared -Xlinker --no-undefined $^ $(CUDA_LINK) -o $@.new && mv $@.new $@
# To the bit as on the CPU: no contraction of what is written apart.
$(B)/nvcc/common/compute/cuda/distro%.o $(B)/nvcc/common/compute/cuda/vector.o: NVCCFLAGS += -fmad=false
# Behind the programs: it takes minutes, and they do not need it.
$(B)/nvcc/%.o: %.cu $(B)/flags | $(BINS)
	@mkdir -p $(@D) && echo "  NV  $<" && $(NVCC) $(NVCCFLAGS) -MF $(@:.o=.d) -c $< -o $@
$(B)/nvcc/%.ptx: %.cu $(B)/flags
	@mkdir -p $(@D) && echo "  NV  $<" && $(NVCC) -std=c++17 -I. -arch=compute_$(firstword $(CUDA_ARCH)) -ptx -MMD -MP -MF $(@:.ptx=.ptx.d) $< -o $@
$(B)/pic/%.o: %.c $(B)/flags
	@mkdir -p $(@D) && echo "  CC  $<" && $(CC) $(CFLAGS) -fPIC -fvisibility=hidden -c $< -o $@
