# PostgreSQL, from Debian's package. Exports KEYWARD_TEST_POSTGRES.
# shellcheck shell=bash

postgres_bin() {
    local initdb
    initdb=$(ls -d /usr/lib/postgresql/*/bin/initdb 2>/dev/null | sort -V | tail -n 1)
    [ -n "$initdb" ] && dirname -- "$initdb"
}

postgres_install() {
    postgres_bin >/dev/null || install_packages postgresql
}

postgres_start() {
    local directory=$1 bin user port try pid
    bin=$(postgres_bin)
    user=$(id -un)
    # PostgreSQL refuses to run as root; the package made this user.
    if [ "$(id -u)" -eq 0 ]; then
        user=postgres
        chown postgres "$directory"
    fi
    # An ICU collation: keys must be in byte order whatever the database's own order is.
    local initdb=("$bin/initdb" -D "$directory/data" -U keyward -A trust --no-sync -E UTF8
        --locale=C.UTF-8 --locale-provider=icu --icu-locale=en)
    if ! (as_user "$user" "${initdb[@]}") >"$directory/initdb.log" 2>&1; then
        cat "$directory/initdb.log" >&2
        return 1
    fi
    for try in 1 2 3 4 5; do
        port=$(free_port)
        (as_user "$user" "$bin/postgres" -D "$directory/data" -k "$directory" \
            -h 127.0.0.1 -p "$port" -c max_connections=300) >"$directory/server.log" 2>&1 &
        pid=$!
        for _ in {1..300}; do
            if "$bin/pg_isready" -q -h 127.0.0.1 -p "$port"; then
                started "$pid"
                "$bin/createdb" -h 127.0.0.1 -p "$port" -U keyward keyward
                export KEYWARD_TEST_POSTGRES="postgres://keyward@127.0.0.1:$port/keyward"
                return 0
            fi
            kill -0 "$pid" 2>/dev/null || break
            sleep 0.1
        done
        kill -KILL "$pid" 2>/dev/null || true
        say "PostgreSQL did not start on port $port (try $try)."
    done
    cat "$directory/server.log" >&2
    return 1
}
