#!/usr/bin/env bash
# Builds the site of the documentation into build/site, in a virtual environment of its own; a warning is an error.
# Arguments go to `mkdocs build`; `$TFRAY_VENV` names another environment.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
source scripts/environment.sh

environment=${TFRAY_VENV:-.venv-site}
install_into "$environment" docs

"$environment/bin/python" scripts/site_pages.py build/pages
# Else Material for MkDocs announces at each build that it ends in May 2027. Zensical follows it, and builds this too.
export NO_MKDOCS_2_WARNING=1
"$environment/bin/mkdocs" build --strict --config-file build/mkdocs.yml "$@"
echo "built build/site/index.html"
