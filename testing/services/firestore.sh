# Google's Firestore emulator, from an installed Google Cloud SDK: no registry ships it. Exports
# KEYWARD_TEST_FIRESTORE, its HOST:PORT, or `absent` where there is no emulator or no Java; the tests on Firestore
# then do nothing. KEYWARD_FIRESTORE_EMULATOR_JAR names the emulator's jar elsewhere.
# shellcheck shell=bash

firestore_jar=''

firestore_install() {
    local root jar jars=("${KEYWARD_FIRESTORE_EMULATOR_JAR:-}")
    for root in "${CLOUDSDK_ROOT_DIR:-}" /usr/lib/google-cloud-sdk /usr/share/google-cloud-sdk \
        "${HOME:-/root}/google-cloud-sdk"; do
        jars+=("$root/platform/cloud-firestore-emulator/cloud-firestore-emulator.jar")
    done
    for jar in "${jars[@]}"; do
        if [ -f "$jar" ]; then
            firestore_jar=$jar
            break
        fi
    done
    if [ -z "$firestore_jar" ]; then
        say "*** NOT TESTED: Firestore. There is no emulator here; install it with:" \
            "gcloud components install cloud-firestore-emulator ***"
    elif ! command -v java >/dev/null; then
        firestore_jar=''
        say "*** NOT TESTED: Firestore. Its emulator needs Java 11 or newer. ***"
    fi
}

firestore_start() {
    local directory=$1 port try pid
    if [ -z "$firestore_jar" ]; then
        export KEYWARD_TEST_FIRESTORE=absent
        return 0
    fi
    for try in 1 2 3 4 5; do
        port=$(free_port)
        java -cp "$firestore_jar" com.google.cloud.datastore.emulator.firestore.CloudFirestore start \
            --host=127.0.0.1 "--port=$port" >"$directory/server.log" 2>&1 &
        pid=$!
        for _ in {1..600}; do
            if grep -q 'Dev App Server is now running' "$directory/server.log"; then
                started "$pid"
                export KEYWARD_TEST_FIRESTORE="127.0.0.1:$port"
                return 0
            fi
            kill -0 "$pid" 2>/dev/null || break
            sleep 0.1
        done
        kill -KILL "$pid" 2>/dev/null || true
        say "The Firestore emulator did not start on port $port (try $try)."
    done
    cat "$directory/server.log" >&2
    return 1
}
