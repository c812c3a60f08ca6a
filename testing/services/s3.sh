# An S3-compatible server, from PyPI's ministack, in a virtual environment in .tools/. Exports
# KEYWARD_TEST_S3, its endpoint: any region and credentials will do, buckets are made by a PUT.
# shellcheck shell=bash

s3_version=1.5.33
s3_tools=$here/../../.tools/ministack-$s3_version

s3_install() {
    [ -x "$s3_tools/bin/ministack" ] && return
    say "Installing ministack $s3_version into .tools/ (once)."
    local log=$scratch/ministack.log
    # What is left of one that was interrupted.
    rm -rf -- "$s3_tools"
    if ! { python3 -m venv "$s3_tools" &&
        "$s3_tools/bin/pip" install --disable-pip-version-check "ministack==$s3_version"; } \
        >"$log" 2>&1; then
        tail -n 20 "$log" >&2
        rm -rf -- "$s3_tools"
        say "The tests need ministack from PyPI, and it could not be installed. Run ./test --fast."
        exit 1
    fi
}

s3_start() {
    local directory=$1 port try pid
    for try in 1 2 3 4 5; do
        port=$(free_port)
        (cd "$directory" && BIND_HOST=127.0.0.1 GATEWAY_PORT=$port PERSIST_STATE=0 \
            exec "$s3_tools/bin/ministack") >"$directory/server.log" 2>&1 &
        pid=$!
        for _ in {1..300}; do
            if (exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null; then
                started "$pid"
                export KEYWARD_TEST_S3="http://127.0.0.1:$port"
                return 0
            fi
            kill -0 "$pid" 2>/dev/null || break
            sleep 0.1
        done
        kill -KILL "$pid" 2>/dev/null || true
        say "The S3 server did not start on port $port (try $try)."
    done
    cat "$directory/server.log" >&2
    return 1
}
