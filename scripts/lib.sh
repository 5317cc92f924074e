# shellcheck shell=bash
# What the scripts beside this file share. Source it first: it stops on errors and goes to the root of the checkout.
set -euo pipefail
export LC_ALL=C
ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd -P)
export ROOT
cd "$ROOT"

# Says what happens now, on stderr, so that stdout stays free for results.
log() { printf '%s: %s\n' "$(basename "$0")" "$*" >&2; }

# Ends the script: die MESSAGE [EXIT_CODE].
die() {
  log "$1"
  exit "${2:-1}"
}

have() { command -v "$1" >/dev/null 2>&1; }

# Runs a command as root: as it is, or by sudo when sudo asks for no password. Fails when there is no such way.
as_root() {
  if [[ $(id -u) == 0 ]]; then
    "$@"
  elif have sudo && sudo -n true 2>/dev/null; then
    sudo -n "$@"
  else
    return 126
  fi
}

# Processors that may be used, fewer when memory is short: a compiler may need 1.5 GiB.
job_count() {
  local cores memory
  cores=$(nproc)
  memory=$(awk '/^MemAvailable/ { print int($2 / 1572864) }' /proc/meminfo 2>/dev/null || echo "$cores")
  if ((memory < 1)); then memory=1; fi
  echo $((memory < cores ? memory : cores))
}

# Everything that is made goes below this folder; BUILD_DIR moves it, for a checkout that cannot be written.
BUILD_DIR=${BUILD_DIR:-$ROOT/build}
export BUILD_DIR

# Lets compilers, CMake and programs find what bootstrap unpacked for a user without root rights.
use_deps() {
  local arch
  [[ -d $ROOT/.deps/usr ]] || return 0
  arch=$(gcc -print-multiarch 2>/dev/null || uname -m)
  export PATH="$ROOT/.deps/usr/bin:$PATH"
  export LD_LIBRARY_PATH="$ROOT/.deps/usr/lib/$arch:$ROOT/.deps/lib/$arch${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
  export CMAKE_PREFIX_PATH="$ROOT/.deps/usr${CMAKE_PREFIX_PATH:+:$CMAKE_PREFIX_PATH}"
}
use_deps
