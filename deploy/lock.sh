#!/bin/sh
# Resolve all dependencies. The lock files hold packages, versions and hashes, but no index.
set -eu
cd "$(dirname "$0")/.."

compile() {
  "${UV:-.venv/bin/uv}" pip compile --quiet --universal --python-version 3.11 --generate-hashes \
    --no-emit-index-url --no-emit-find-links --no-header --no-annotate "$@"
}

# Every extra of the distributions but `testing`, which nothing that runs needs, and `parquet` and
# `figures`: a set-up and an image take no 200 MB for a few formats of files.
run_time_extras() {
  sed -n '/^\[project.optional-dependencies\]/,/^\[tool/s/^\([a-z]*\) = .*/\1/p' \
    shared/pyproject.toml services/*/pyproject.toml deploy/cli/pyproject.toml |
    sort -u | grep -vxE 'testing|parquet|figures|all' | sed 's/^/--extra /'
}

# shellcheck disable=SC2046 # one word for each extra
compile --group build $(run_time_extras) \
  --no-emit-package socratic-ai-bench-core \
  --no-emit-package socratic-ai-bench-runner \
  --no-emit-package socratic-ai-bench-judge \
  --no-emit-package socratic-ai-bench-curator \
  --no-emit-package socratic-ai-bench-api \
  shared/pyproject.toml services/*/pyproject.toml deploy/cli/pyproject.toml \
  -o constraints.txt "$@"
compile --group test -c constraints.txt -o tests/requirements.txt "$@"
compile --group emulator -o deploy/emulator/requirements.txt "$@"
compile --group emulator --group servers -c deploy/emulator/requirements.txt -o tests/servers/requirements.txt "$@"
compile --group aws -c constraints.txt -o deploy/aws/requirements.txt "$@"
compile --group local-model --no-deps -o services/runner/requirements-local.txt "$@"
