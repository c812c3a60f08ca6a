# Forge's key-value store: a test server of its documented shapes (the folder beside this file). No server of
# Atlassian's can be had; their client, @forge/kvs (npm, in .tools/), proves that ours speaks what it speaks.
# Exports KEYWARD_TEST_FORGE_KVS, the base of the API, and KEYWARD_TEST_FORGE_KVS_TOOLS, where proof.js and drive.js are.
# shellcheck shell=bash

forge_kvs_files=$here/forge_kvs
forge_kvs_tools=$here/../../.tools/forge_kvs

forge_kvs_install() {
    local file
    # Whatever was installed by another lock file is not what is wanted.
    if ! cmp -s "$forge_kvs_files/package-lock.json" "$forge_kvs_tools/installed"; then
        if ! command -v npm >/dev/null; then
            say "The tests need npm and Node 20 or newer. Install them, or run ./test --fast."
            exit 1
        fi
        say "Installing @forge/kvs into .tools/ (once)."
        local log=$scratch/forge_kvs.log
        rm -rf -- "$forge_kvs_tools"
        mkdir -p "$forge_kvs_tools"
        cp "$forge_kvs_files"/{package.json,package-lock.json,.npmrc} "$forge_kvs_tools"
        if ! (cd "$forge_kvs_tools" && npm ci --ignore-scripts --no-audit --no-fund) >"$log" 2>&1; then
            tail -n 20 "$log" >&2
            rm -rf -- "$forge_kvs_tools"
            say "The tests need @forge/kvs from npm, and it could not be installed. Run ./test --fast."
            exit 1
        fi
        cp "$forge_kvs_files/package-lock.json" "$forge_kvs_tools/installed"
    fi
    # Node looks for packages beside the script.
    for file in "$forge_kvs_files"/*.js; do
        cp "$file" "$forge_kvs_tools"
    done
}

forge_kvs_start() {
    local directory=$1 port try pid
    for try in 1 2 3 4 5; do
        port=$(free_port)
        node "$forge_kvs_tools/server.js" "$port" >"$directory/server.log" 2>&1 &
        pid=$!
        for _ in {1..300}; do
            if grep -q '^ready$' "$directory/server.log"; then
                started "$pid"
                export KEYWARD_TEST_FORGE_KVS="http://127.0.0.1:$port/forge/storage/kvs"
                KEYWARD_TEST_FORGE_KVS_TOOLS=$(cd -- "$forge_kvs_tools" && pwd)
                export KEYWARD_TEST_FORGE_KVS_TOOLS
                return 0
            fi
            kill -0 "$pid" 2>/dev/null || break
            sleep 0.1
        done
        kill -KILL "$pid" 2>/dev/null || true
        say "The Forge KVS server did not start on port $port (try $try)."
    done
    cat "$directory/server.log" >&2
    return 1
}
