#!/usr/bin/env bash
# Makes what the GPU stand-ins need, outside of this folder, in ${XDG_CACHE_HOME:-$HOME/.cache}/tfray-gpu-kit:
# a virtual environment with CuPy and tfray's dependencies, CuPy's source, and the emulated CUDA built from both.
# Does nothing that has been done already. Prints the path of the Python to use; all else goes to stderr.
#
# PYTHON names the Python to make the environment with, TFRAY_EXTRA tfray's extra to install (test).
set -euo pipefail

kit=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
project=$(cd "$kit/../../.." && pwd)
cache=${XDG_CACHE_HOME:-$HOME/.cache}/tfray-gpu-kit
venv=$cache/venv
extra=${TFRAY_EXTRA:-test}
export PYTHONDONTWRITEBYTECODE=1 # nothing that is made lies in the kit's own folder
# nvcc's wheel has headers that CUDA's runtime includes; Cython builds CuPy's module, and CuPy 14.2 wants this one.
packages=(
    'cupy-cuda12x[ctk]==14.2.0'
    'nvidia-cuda-nvcc-cu12==12.9.*'
    'Cython==3.2.*'
    'setuptools>=77'
    'wheel'
    'pytest>=8'
    'pytest-timeout>=2.3'
    'hypothesis>=6.100'
)

say() { echo "gpu-kit: $*" >&2; }

# A command that Debian's packages lack on this machine, or a header, makes apt install its package.
install_compiler() {
    local python=$1 missing=() sudo=
    command -v g++ >/dev/null || missing+=(g++)
    "$python" -c 'import os, sysconfig as s; os.stat(s.get_path("include") + "/Python.h")' 2>/dev/null ||
        missing+=(python3-dev)
    [[ ${#missing[@]} -gt 0 ]] || return 0
    [[ $(id -u) -eq 0 ]] || sudo=sudo
    say "apt installs ${missing[*]}"
    $sudo apt-get update -qq >&2
    $sudo apt-get install -y -qq --no-install-recommends "${missing[@]}" >&2
}

make_venv() {
    local python=$1
    [[ ! -x $venv/bin/python ]] || return 0
    "$python" -m venv "$venv" >/dev/null 2>&1 || {
        # Some distributions ship venv without the pip that it would install: then pip installs itself.
        "$python" -m venv --clear --without-pip "$venv"
        "$python" -m pip --python "$venv/bin/python" install -qq pip >&2
    }
}

# Installs anew when the list above or the project's dependencies have changed, or the project is another one.
install_packages() {
    local stamp=$cache/packages.installed place=$cache/project.installed wanted
    local pip=("$venv/bin/python" -m pip install -qq --disable-pip-version-check)
    wanted="$extra ${packages[*]} $(cksum <"$project/pyproject.toml")"
    if [[ ! -f $stamp || $(<"$stamp") != "$wanted" ]]; then
        say "installing CuPy, CUDA's headers and tfray[$extra] into $venv: some minutes, 4 GB"
        "${pip[@]}" "${packages[@]}" --editable "$project[$extra]" >&2
        echo "$wanted" >"$stamp"
        echo "$project" >"$place"
    elif [[ ! -f $place || $(<"$place") != "$project" ]]; then
        "${pip[@]}" --no-deps --no-build-isolation --editable "$project" >&2
        echo "$project" >"$place"
    fi
}

mkdir -p "$cache"
exec 9>"$cache/setup.lock"
flock 9
python=${PYTHON:-python3}
install_compiler "$python"
make_venv "$python"
install_packages
(cd "$project" && "$venv/bin/python" -m tests.support.gpu.emu.build) >&2
echo "$venv/bin/python"
