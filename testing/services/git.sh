# git, from Debian's package. It is a program and not a server: tests start `git daemon` and
# `git http-backend` themselves, each for a repository of its own.
# shellcheck shell=bash

git_is_whole() {
    local programs
    programs=$(git --exec-path 2>/dev/null) || return 1
    [ -x "$programs/git-daemon" ] && [ -x "$programs/git-http-backend" ]
}

git_install() {
    git_is_whole || install_packages git
}

git_start() {
    :
}
