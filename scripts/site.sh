#!/usr/bin/env bash
# Builds the site of the documentation into build/site, in a virtual environment of its own; a warning is an error.
# Arguments go to `mkdocs build`; `$TFRAY_VENV` names another environment.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
source scripts/environment.sh

environment=${TFRAY_VENV:-.venv-site}
install_into "$environment" docs

"$environment/bin/python" scripts/site_pages.py build/pages
export NO_MKDOCS_2_WARNING=1 # an advertisement of a successor, which is not ready
"$environment/bin/mkdocs" build --strict --config-file build/mkdocs.yml "$@"
echo "built build/site/index.html"
