# Needs python3, g++, make and git; everything else goes into .venv.
# On a machine without a GPU, PIP_EXTRA_INDEX_URL=https://download.pytorch.org/whl/cpu gets the small PyTorch.
.DEFAULT_GOAL := help
SHELL := /bin/bash -o pipefail

TESTED := 2.13.0
TORCH ?= $(TESTED)
VENV := $(if $(filter $(TESTED),$(TORCH)),.venv,build/torch-$(TORCH))
BIN := $(abspath $(VENV))/bin
READY := $(VENV)/ready
TOOLS := $(VENV)/tools
DEVICE ?= simulator
DEMO := build/foo
DIST := build/dist
TRIAL := build/trial
JOBS ?= $(shell nproc)
RELEASES ?= 2.10 2.11 2.12 2.13 2.14 2.15
# The features, build settings and packages that a device other than the simulator needs.
FEATURES := $(if $(filter simulator,$(DEVICE)),,--data preset=full)
CHOSEN := $(if $(filter simulator,$(DEVICE)),,-C cmake.define.FOO_DEVICE=$(DEVICE))
# OpenCL and Vulkan have neither Fourier transforms nor linear algebra: the CPU fallback is allowed.
FALLBACK := $(if $(filter opencl vulkan,$(DEVICE)),allow,refuse)
PACKAGES_opencl := pocl-opencl-icd ocl-icd-opencl-dev opencl-headers
PACKAGES_vulkan := mesa-vulkan-drivers libvulkan-dev libshaderc-dev glslang-dev spirv-tools vulkan-validationlayers
PACKAGES := $(PACKAGES_$(DEVICE))

# The compiled parts of the demo and of the tests take cmake and ninja from the environment.
export PATH := $(BIN):$(PATH)
export CMAKE_BUILD_PARALLEL_LEVEL ?= $(JOBS)

.PHONY: help venv packages demo check test test-all elsewhere faults lint format docs recording screens bench evidence reserved compat site conformance fuzz sanitize oclgrind release-check clean

help:  ## list the targets
	@grep -hE '^[a-z-]+:.*  ## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*  ## (.*)/  make \1\t\2/' | expand -t 22

venv: $(READY)  ## the virtual environment, with the pinned PyTorch and all tools; another with TORCH=2.15.0

# None of the tools requires PyTorch, so none chooses its version.
$(TOOLS): pyproject.toml Makefile
	mkdir -p $(@D)
	test -x $(BIN)/python || python3 -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet --editable '.[build,test,docs]'
	touch $@

$(READY): $(TOOLS)
	$(BIN)/python -m pip install --quiet torch==$(TORCH)
	touch $@

# Uses apt-get if it is available; otherwise CMake names the missing package.
packages:
	@test -z "$(PACKAGES)" || ! command -v dpkg >/dev/null || dpkg -s $(PACKAGES) >/dev/null 2>&1 || \
	  $(if $(filter 0,$(shell id -u)),,sudo) apt-get -qq install -y --no-install-recommends $(PACKAGES) >/dev/null

demo: $(READY) packages  ## render, build and install foo, and run its quickstart; DEVICE=opencl or vulkan uses that device
	rm -rf $(DEMO)
	$(BIN)/copier copy --quiet --defaults $(FEATURES) --vcs-ref HEAD $(CURDIR) $(DEMO)
	$(BIN)/python -m pip install --quiet --no-build-isolation $(CHOSEN) $(DEMO)
	$(BIN)/python $(DEMO)/examples/quickstart.py

check: $(TOOLS)  ## lint, types, rules and the command, in five minutes: no PyTorch is needed
	$(BIN)/python -m maintenance.gate check --jobs $(JOBS)

test: $(READY) packages  ## the tests that a change must pass; with TORCH=2.15.0 or DEVICE=opencl, the tests of foo with that PyTorch or device
ifeq ($(TORCH) $(DEVICE),$(TESTED) simulator)
	$(BIN)/python -m maintenance.gate test --jobs $(JOBS)
else
	rm -rf $(DEMO)
	$(BIN)/copier copy --quiet --defaults --data preset=full --vcs-ref HEAD $(CURDIR) $(DEMO)
	$(BIN)/python -m pip install --quiet --no-build-isolation $(CHOSEN) '$(abspath $(DEMO))[test]'
	cd $(DEMO) && FOO_DEVICE=$(DEVICE) FOO_TEST_FALLBACK=$(FALLBACK) $(BIN)/python -m pytest -n $(JOBS) -q
endif

test-all: $(READY)  ## all tests, as each night and before a release; also builds other projects
	$(BIN)/python -m maintenance.gate test-all --jobs $(JOBS)

# One environment each night: tests must set the variables on which they depend.
elsewhere: $(READY)  ## make test in another environment (older CPU, language, load, ...): today's, or ENVIRONMENT=sse4
	$(BIN)/python -m maintenance.environments $(ENVIRONMENT) -- $(MAKE) test

faults: $(READY)  ## plant faults one at a time, and report which tests catch each: an hour or more; WORDS="autocast" selects some
	PYTHONPATH=generator:tests $(BIN)/python -m faults $(WORDS)

lint: $(TOOLS)  ## formatting and types of our own Python
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy

format: $(READY)  ## format our own code and the template's
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .
	$(BIN)/python -m maintenance.format

docs: $(READY)  ## the documentation, into build/site
	$(BIN)/python -m maintenance.feature_operators
	$(BIN)/python -m maintenance.schema
	$(BIN)/python -m maintenance.pages
	$(BIN)/mkdocs build --strict --site-dir build/site

recording: $(READY)  ## docs/quickstart.svg, from a run of the first commands
	$(BIN)/python -m maintenance.recording

screens: $(TOOLS)  ## docs/screens: pictures of new, features, preview and the page, from runs of them
	PYTHONPATH=generator:tests $(BIN)/python -m maintenance.screenshots

bench: $(READY)  ## the figures of docs/figures.md
	$(BIN)/python -m benchmarks

reserved: $(READY)  ## the list of names that a backend cannot have, from the pinned PyTorch
	$(BIN)/python -m maintenance.reserved

evidence: $(READY) packages  ## test and time a device on this machine, in ten minutes, for docs/devices.md: DEVICE=opencl
	$(BIN)/python -m maintenance.device_evidence $(DEVICE)
	$(BIN)/python -m maintenance.pages

compat: $(READY)  ## a full render against the headers of every PyTorch that it supports (downloads 1 GB once)
	$(BIN)/python -m maintenance.compat --jobs $(JOBS)

conformance: demo  ## all of PyTorch's operator tests on a new render; the results are in build/foo/docs/operators.html
	cd $(DEMO) && { $(BIN)/python -m pytest tests/conformance -m conformance_full -n $(JOBS) -q; status=$$?; \
	  $(BIN)/python tests/conformance/report.py && exit $$status; }

# The preset of the demo does not contain these tests.
fuzz sanitize: FEATURES := --data preset=full

fuzz: demo  ## a million steps of random programs on a new render, compared with the CPU
	cd $(DEMO) && $(BIN)/python -m pytest tests/fuzz -m fuzz_full -n $(JOBS) -q

sanitize: demo  ## a new render under AddressSanitizer with UBSan, then under ThreadSanitizer
	cd $(DEMO) && for sanitizer in address thread; do \
	  $(BIN)/python tests/sanitizers $$sanitizer || status=1; done; exit $${status:-0}

oclgrind: $(READY)  ## the OpenCL device's kernels under Oclgrind: races, accesses out of bounds
	$(MAKE) packages PACKAGES="oclgrind ocl-icd-opencl-dev opencl-headers"
	rm -rf $(DEMO)
	$(BIN)/copier copy --quiet --defaults --data preset=full --vcs-ref HEAD $(CURDIR) $(DEMO)
	cd $(DEMO) && $(BIN)/python device/tests/opencl/oclgrind

site: $(READY)  ## the page for choosing a backend, into build/page
	$(BIN)/python -m maintenance.site.build $(if $(SOURCE),--source $(SOURCE))

# RELEASES= omits the wheels of a project, which take ten minutes for each PyTorch.
release-check: $(TOOLS)  ## rehearse a release: the packages, their installation, and wheels of foo for each PyTorch; RELEASES=2.13 for one
	@test -z "$(TAG)" || test "$(TAG)" = "v$$($(BIN)/torchsmith --version | cut -d' ' -f2)" || \
	  { echo "the tag is $(TAG), but 'torchsmith --version' says otherwise: raise __version__, or name the tag after it"; exit 1; }
	@test -z "$(TAG)" || grep -q "^## $(TAG:v%=%) (20" CHANGELOG.md || \
	  { echo "CHANGELOG.md has no dated heading for $(TAG): write '## $(TAG:v%=%) ($$(date +%F))'"; exit 1; }
	$(BIN)/python -m maintenance.release.conflicts
	rm -rf $(DIST) $(TRIAL)
	$(BIN)/python -m build --outdir $(DIST)
	$(BIN)/python -m twine check --strict $(DIST)/*
	$(BIN)/python -m venv $(TRIAL)
	$(TRIAL)/bin/python -m pip install --quiet $(DIST)/*.whl
	cd $(TRIAL) && bin/torchsmith --version && for preset in minimal standard full; do \
	  bin/torchsmith new torch-$$preset --defaults -d backend_name=foo -d preset=$$preset || exit 1; done
	test -z "$(RELEASES)" || PYTHONPATH=generator $(BIN)/python -m maintenance.release $(RELEASES:%=--torch %) $(DIST)

clean:  ## remove all built files and the environment
	rm -rf build $(VENV)
