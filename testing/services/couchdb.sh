# CouchDB's protocol: PouchDB's server (npm's express-pouchdb, in .tools/), since CouchDB itself is in no
# registry. Exports KEYWARD_TEST_COUCHDB, its base URL with user and password.
# shellcheck shell=bash

couchdb_files=$here/couchdb
couchdb_tools=$here/../../.tools/couchdb

couchdb_install() {
    # Whatever was installed by another lock file is not what is wanted.
    if ! cmp -s "$couchdb_files/package-lock.json" "$couchdb_tools/installed"; then
        if ! command -v npm >/dev/null; then
            say "The tests need npm and Node 20 or newer. Install them, or run ./test --fast."
            exit 1
        fi
        say "Installing PouchDB's server into .tools/ (once)."
        local log=$scratch/pouchdb.log
        rm -rf -- "$couchdb_tools"
        mkdir -p "$couchdb_tools"
        cp "$couchdb_files"/{package.json,package-lock.json,.npmrc} "$couchdb_tools"
        if ! (cd "$couchdb_tools" && npm ci --no-audit --no-fund) >"$log" 2>&1; then
            tail -n 20 "$log" >&2
            rm -rf -- "$couchdb_tools"
            say "The tests need PouchDB's server from npm, and it could not be installed. Run ./test --fast."
            exit 1
        fi
        cp "$couchdb_files/package-lock.json" "$couchdb_tools/installed"
    fi
    # Node looks for packages beside the script.
    cp "$couchdb_files/server.js" "$couchdb_tools"
}

couchdb_start() {
    local directory=$1 port try pid
    for try in 1 2 3 4 5; do
        port=$(free_port)
        mkdir -p "$directory/databases"
        # In its directory, where PouchDB also keeps a list of all databases.
        (cd "$directory" && exec node "$couchdb_tools/server.js" "$port" "$directory/databases") \
            >"$directory/server.log" 2>&1 &
        pid=$!
        for _ in {1..600}; do
            if grep -q '^ready$' "$directory/server.log"; then
                started "$pid"
                export KEYWARD_TEST_COUCHDB="http://keyward:p%40ss%2Fword@127.0.0.1:$port"
                return 0
            fi
            kill -0 "$pid" 2>/dev/null || break
            sleep 0.1
        done
        kill -KILL "$pid" 2>/dev/null || true
        say "The CouchDB server did not start on port $port (try $try)."
    done
    cat "$directory/server.log" >&2
    return 1
}
