// Atlassian's own client of the key-value store, @forge/kvs, pointed at the test server.
import { createRequire } from 'node:module';

/** The client, for one token. Its requests go where Forge would send them: `/api/v1/…` of the base's server. */
export function clientOf(base, token) {
    const { origin } = new URL(base);
    // What the runtime of Forge gives to its apps.
    global.__forge_fetch__ = (_target, path, init) =>
        fetch(new URL(path, origin), { ...init, headers: { ...init.headers, authorization: `Bearer ${token}` } });
    return createRequire(import.meta.url)('@forge/kvs');
}
