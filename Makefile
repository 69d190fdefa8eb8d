# SPDX-License-Identifier: GPL-2.0
#
# The commands for users and developers. `make help` lists them. All generated files are below build/.

ifneq ($(words $(CURDIR)),1)
$(error make cannot build in a directory with a blank in its path: '$(CURDIR)')
endif

KERNELRELEASE ?= $(shell uname -r)
KDIR ?= /lib/modules/$(KERNELRELEASE)/build
KERNEL ?= 6.12
prefix ?= /usr/local
DESTDIR ?=

HEADERS_DIR = $(DESTDIR)/usr/src/flexmem/include
MODULES_DIR = host-$(KERNELRELEASE)
USERLIB = $(MAKE) -C userlib O=$(CURDIR)/build/userlib prefix=$(prefix) DESTDIR=$(DESTDIR)

all: ## Build the library and the command
	@mkdir -p build && [ -w build ] || { echo "build/ belongs to another user: build as yourself before you install as root"; exit 1; }
	$(USERLIB) all

modules: ## Build the kernel modules for this machine (KERNELRELEASE=, KDIR=)
	@echo 'Building flexmem.ko and flexmem_sim.ko: a minute or two'
	tests/vm/modules.sh $(MODULES_DIR) $(KDIR)
	@echo build/ko/$(MODULES_DIR)

core: ## Link flexmem.ko without any part (kmod/part.h) for this machine (KERNELRELEASE=, KDIR=), and test it natively
	@tests/setup.sh build debug
	@tests/vm/debug-kernel.sh --source
	@$(MAKE) -s -C tests/native O=$(CURDIR)/build/tests/native core
	build/tests/native/bare/bare
	build/tests/native/bare/kunit
	tests/vm/modules.sh core $(KDIR) FLEXMEM_CORE=y

install: all ## Install the library and the command (prefix=, DESTDIR=)
	$(USERLIB) install

uninstall: ## Remove the files that `make install` installed (prefix=, DESTDIR=)
	$(USERLIB) uninstall

modules_install: modules headers_install ## Install the kernel modules, and what drivers for devices need (INSTALL_MOD_PATH=, DESTDIR=)
	$(MAKE) -C $(KDIR) M=$(CURDIR)/build/ko/$(MODULES_DIR) modules_install
	/sbin/depmod $(if $(INSTALL_MOD_PATH),-b $(INSTALL_MOD_PATH)) $(KERNELRELEASE)
	DESTDIR=$(DESTDIR) kmod/symvers.sh install $(KERNELRELEASE) build/ko/$(MODULES_DIR)/Module.symvers

headers_install: ## Install the headers that drivers for devices include (DESTDIR=)
	install -d $(HEADERS_DIR)/flexmem $(HEADERS_DIR)/linux
	install -m 644 kmod/include/flexmem/*.h $(HEADERS_DIR)/flexmem
	install -m 644 uapi/linux/flexmem.h $(HEADERS_DIR)/linux

deb: ## Debian packages, as build/deb/*.deb (tests/setup.sh deb)
	@tests/deb/build.sh

demo: ## Run real traces through the driver on a stock kernel, in a virtual machine
	tests/demo.sh

quick: ## Tests without a virtual machine: the native suites, the library, static checks of changed files
	tests/check.sh native library changed

check: ## All tests, in virtual machines and natively
	tests/check.sh

check-long: ## All tests with long runs; continues after an interruption
	FLEXMEM_LONG=1 tests/check.sh

bench-cache: ## Measure how much the caching allocator reserves on the traces, and what it costs
	@tests/setup.sh build bench
	@$(MAKE) -s -C tests/bench O=$(CURDIR)/build/tests/bench cache

bench-driver: ## Measure what ALLOC and FREE cost, in instructions of an emulated machine
	@tests/setup.sh build vm
	@$(MAKE) -s -C tests/bench O=$(CURDIR)/build/tests/bench pairs
	@FLEXMEM_ACCEL=icount tests/vm/run.sh 6.12 --cpus 1 --no-load -- tests/vm/bench.sh

python: ## The Python package "flexmem" (tests/setup.sh python)
	$(USERLIB) lib
	@$(MAKE) -s -C userlib/bindings/python O=$(CURDIR)/build/userlib/python LIB=$(CURDIR)/build/userlib all
	@echo build/userlib/python

torch: ## PyTorch's device "flexmem", in a Debian 13 below build/torch (300 MB to fetch, 8 minutes, once)
	tests/torch/root.sh
	@echo 'Compiling the device for PyTorch, which takes some minutes'
	@tests/torch/build.sh
	@echo "Try it: FLEXMEM_TORCH=host tests/torch/enter.sh python3 userlib/bindings/torch/examples/train.py"

torch-check: ## Models train in flexmem's memory as on the CPU; needs no driver
	tests/check.sh torch

bench-gpu: ## Measure PyTorch on an NVIDIA GPU, with its own allocators and with flexmem's (PYTHON=)
	$(USERLIB) all
	@PYTHONPATH=userlib/bindings/python $(or $(PYTHON),python3) tests/gpu/bench.py

bench-torch: ## Measure the device "flexmem" and the CPU, in ns and in instructions
	tests/torch/bench.sh

vm: ## A shell in a virtual machine, or CMD='...' there (KERNEL=6.1|6.12|7|debug FLEXMEM_PARAMS= SIM_PARAMS=)
	@tests/vm/kernel.sh --known '$(KERNEL)'
	@tests/setup.sh build vm $(if $(filter debug kcsan,$(KERNEL)),debug)
	@[ ! -e userlib/Makefile ] || $(USERLIB) all >/dev/null
	@tests/vm/shell.sh $(KERNEL)

html: ## The documentation, as build/docs/html/index.html
	@$(MAKE) -s -C Documentation html O=$(CURDIR)/build/docs
	@echo build/docs/html/index.html

clean: ## Remove what was built, but neither the kernels nor PyTorch
	rm -rf build/userlib build/ko build/selftests build/torture build/faults build/tests build/docs build/check \
		build/check-long build/selfcheck build/vm build/first build/streams build/raw build/npu build/own.trace \
		build/torch/made build/torch/bench build/torch-sid/made

distclean: ## Remove everything generated
	tests/torch/root.sh --remove
	rm -rf build

help: ## This list
	@awk -F ':.*## ' '/^[a-z_-]+:.*## / { printf "  make %-16s %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))

# make does not expand the values of these variables, so scripts get their quotes and dollar signs unchanged.
override CMD := $(value CMD)
override FLEXMEM_PARAMS := $(value FLEXMEM_PARAMS)
override SIM_PARAMS := $(value SIM_PARAMS)
export CMD FLEXMEM_PARAMS SIM_PARAMS

.PHONY: all modules core install uninstall modules_install headers_install deb demo quick check check-long bench-cache bench-driver bench-gpu bench-torch python torch torch-check vm html clean distclean help
