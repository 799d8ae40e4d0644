# Sourced by the scripts beside it: where the checkout and its virtual environment are.
#
#   root     the checkout
#   venv     its virtual environment: $YARNLING_VENV if that is set, else .venv in the checkout
#   install  installs what a script needs: "install --run" or "install --dev"

root=$(CDPATH='' cd -- "$(dirname -- "$0")/.." && pwd -P)
venv=${YARNLING_VENV:-$root/.venv}

# A python that can run yarnling. A name on the PATH proves nothing (pyenv's shims are there for every version).
find_python() {
    for candidate in python3 python3.14 python3.13 python3.12 python3.11; do
        if "$candidate" -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1; then
            echo "$candidate"
            return
        fi
    done
    found=$(python3 --version 2>&1) || found="no python3"
    echo "$0: yarnling needs Python 3.11 or later; found $found (install python3.11 or put a newer python3 on the PATH)" >&2
    return 1
}

install() {
    python=$(find_python) || exit 1
    "$python" "$root/scripts/install.py" --venv "$venv" "$@" || exit
}
