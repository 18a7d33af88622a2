#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs the quick tests on every installed Python from 3.11 up, each in its own environment below build/. Passes its
# arguments to pytest. TREECLAIM_OTHER_PYTHONS=1 skips the version of .venv.
set -euo pipefail
cd "$(dirname "$0")/.."
uv=.venv/bin/uv
own=$(.venv/bin/python -c 'import sys; print("{}.{}".format(*sys.version_info))')

# Finds an interpreter on the path or in the folders of pyenv and uv.
interpreter() {
    local candidate
    for candidate in "python$1" /usr/bin/python"$1" /usr/local/bin/python"$1" \
        "$HOME"/.pyenv/versions/"$1".*/bin/python "$HOME"/.local/share/uv/python/cpython-"$1".*/bin/python; do
        if "$candidate" -c 'import venv, ensurepip' >/dev/null 2>&1; then
            echo "$candidate"
            return
        fi
    done
}

for version in 3.11 3.12 3.13 3.14; do
    if [ "${TREECLAIM_OTHER_PYTHONS:-0}" = 1 ] && [ "$version" = "$own" ]; then continue; fi
    python=$(interpreter "$version")
    if [ -z "$python" ]; then
        echo "Python $version is not installed; its tests are NOT RUN"
        continue
    fi
    folder=build/python-$version
    if [ ! -e "$folder/ready" ] || [ requirements/dev.txt -nt "$folder/ready" ]; then
        "$uv" venv --quiet --clear --python "$python" "$folder"
        "$uv" pip install --quiet --python "$folder/bin/python" --no-deps --require-hashes \
            --requirement requirements/build.txt --requirement requirements/dev.txt
        "$uv" pip install --quiet --python "$folder/bin/python" --no-deps --no-build-isolation --editable .
        touch "$folder/ready"
    fi
    echo "Python $version"
    "$folder/bin/python" -m pytest -q -p no:cacheprovider "$@"
done
