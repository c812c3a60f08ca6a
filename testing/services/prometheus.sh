# promtool, from Debian's package prometheus, unpacked into .tools/: installing the package would start a
# server. Exports KEYWARD_TEST_PROMTOOL, the program.
# shellcheck shell=bash

prometheus_tools=$here/../../.tools/prometheus

prometheus_install() {
    [ -x "$prometheus_tools/usr/bin/promtool" ] && return
    if ! command -v apt-get >/dev/null; then
        if ! command -v promtool >/dev/null; then
            say "The tests need promtool (Debian's package prometheus). Install it, or run ./test --fast."
            exit 1
        fi
        return
    fi
    say "Unpacking Debian's promtool into .tools/ (once)."
    local log=$scratch/prometheus.log folder=$scratch/prometheus-package
    mkdir -p "$folder" "$prometheus_tools"
    # Without root the lists of packages are as old as they are.
    if [ "$(id -u)" -eq 0 ]; then
        apt-get update >"$log" 2>&1 || true
    fi
    if ! (cd "$folder" && apt-get download prometheus &&
        dpkg-deb --fsys-tarfile prometheus_*.deb |
        tar -x -C "$prometheus_tools" ./usr/bin/promtool) >>"$log" 2>&1; then
        tail -n 20 "$log" >&2
        rm -rf -- "$prometheus_tools"
        say "The tests need Debian's package prometheus, and it could not be downloaded. Run ./test --fast."
        exit 1
    fi
}

prometheus_start() {
    KEYWARD_TEST_PROMTOOL=$prometheus_tools/usr/bin/promtool
    [ -x "$KEYWARD_TEST_PROMTOOL" ] || KEYWARD_TEST_PROMTOOL=$(command -v promtool)
    export KEYWARD_TEST_PROMTOOL
}
