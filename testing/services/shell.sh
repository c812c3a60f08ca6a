# What readers of the documents use: zsh beside bash, curl and jq, from Debian's packages. They are programs
# and not servers: tests start them.
# shellcheck shell=bash

shell_install() {
    local missing=() program
    for program in zsh curl jq; do
        command -v "$program" >/dev/null || missing+=("$program")
    done
    [ "${#missing[@]}" -eq 0 ] || install_packages "${missing[@]}"
}

shell_start() {
    :
}
