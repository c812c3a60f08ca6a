# Cloudflare KV: workerd's own (npm's miniflare, in .tools/) behind the REST API of the folder beside this
# file. Exports KEYWARD_TEST_CLOUDFLARE_KV, the base of the API; its token is keyward-test-token.
# shellcheck shell=bash

cloudflare_kv_files=$here/cloudflare_kv
cloudflare_kv_tools=$here/../../.tools/cloudflare_kv

cloudflare_kv_install() {
    local file
    # Whatever was installed by another lock file is not what is wanted.
    if ! cmp -s "$cloudflare_kv_files/package-lock.json" "$cloudflare_kv_tools/installed"; then
        if ! command -v npm >/dev/null; then
            say "The tests need npm and Node 20 or newer. Install them, or run ./test --fast."
            exit 1
        fi
        say "Installing miniflare into .tools/ (once)."
        local log=$scratch/miniflare.log
        rm -rf -- "$cloudflare_kv_tools"
        mkdir -p "$cloudflare_kv_tools"
        cp "$cloudflare_kv_files"/{package.json,package-lock.json,.npmrc} "$cloudflare_kv_tools"
        if ! (cd "$cloudflare_kv_tools" && npm ci --no-audit --no-fund) >"$log" 2>&1; then
            tail -n 20 "$log" >&2
            rm -rf -- "$cloudflare_kv_tools"
            say "The tests need miniflare from npm, and it could not be installed. Run ./test --fast."
            exit 1
        fi
        cp "$cloudflare_kv_files/package-lock.json" "$cloudflare_kv_tools/installed"
    fi
    # Node looks for packages beside the script.
    for file in "$cloudflare_kv_files"/*.js; do
        cp "$file" "$cloudflare_kv_tools"
    done
}

cloudflare_kv_start() {
    local directory=$1 port try pid
    for try in 1 2 3 4 5; do
        port=$(free_port)
        mkdir -p "$directory/kv"
        # From its own folder: miniflare reads no script outside the one that it is started in.
        (cd "$cloudflare_kv_tools" && exec node server.js "$port" "$directory/kv") \
            >"$directory/server.log" 2>&1 &
        pid=$!
        for _ in {1..600}; do
            if grep -q '^ready$' "$directory/server.log"; then
                started "$pid"
                export KEYWARD_TEST_CLOUDFLARE_KV="http://127.0.0.1:$port/client/v4"
                return 0
            fi
            kill -0 "$pid" 2>/dev/null || break
            sleep 0.1
        done
        kill -KILL "$pid" 2>/dev/null || true
        say "The Cloudflare KV server did not start on port $port (try $try)."
    done
    cat "$directory/server.log" >&2
    return 1
}
