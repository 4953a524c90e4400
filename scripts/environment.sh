# Sourced by the scripts here: a virtual environment with tfray installed in it, for editing.

# Every process would compile tfray anew, and every process of tests the tests too: a quarter of a minute.
unset PYTHONDONTWRITEBYTECODE

# The first Python from 3.11 on: $PYTHON, or what is found.
find_python() {
  local candidate
  for candidate in ${PYTHON:+"$PYTHON"} python3 python3.13 python3.12 python3.11 python; do
    if "$candidate" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
      echo "$candidate"
      return
    fi
  done
  echo "tfray needs Python 3.11 or newer; set PYTHON to one" >&2
  return 1
}

# Use: install_into DIRECTORY EXTRA. Makes the environment if it is not there, and installs `.[EXTRA]` into it unless
# that has been done since pyproject.toml changed.
install_into() {
  local directory=$1 extra=$2 python
  local stamp="$directory/tfray-$extra.installed"
  local wanted
  wanted="$PWD $(cksum <pyproject.toml)"
  if [[ -x $directory/bin/python && -f $stamp && $(<"$stamp") == "$wanted" ]]; then
    return
  fi
  python=$(find_python)
  echo "installing tfray[$extra] into $directory; the first time, this takes a minute or two" >&2
  if [[ ! -x $directory/bin/python ]]; then
    # Some distributions ship venv without the pip that it would install: then pip installs itself.
    "$python" -m venv "$directory" >/dev/null 2>&1 || {
      "$python" -m venv --clear --without-pip "$directory"
      "$python" -m pip --python "$directory/bin/python" install --quiet pip
    }
  fi
  "$directory/bin/python" -m pip install --quiet --disable-pip-version-check --editable ".[$extra]"
  echo "$wanted" >"$stamp"
}
