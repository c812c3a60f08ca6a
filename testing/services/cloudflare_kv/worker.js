// Gives the server of this folder the KV namespaces that workerd binds: one operation per request, no
// opinion of its own. What workerd refuses (names, sizes, expirations, limits), it refuses here.

/** The namespaces that are bound, by number. */
const namespace = (env, number) => env[`KV${number}`];

async function operate(request, env) {
    const url = new URL(request.url);
    const [, number, operation] = url.pathname.split('/');
    const kv = namespace(env, number);
    const parameter = (name) => url.searchParams.get(name) ?? undefined;
    switch (operation) {
        case 'put': {
            const options = {};
            if (parameter('metadata')) options.metadata = JSON.parse(parameter('metadata'));
            if (parameter('expiration')) options.expiration = Number(parameter('expiration'));
            if (parameter('ttl')) options.expirationTtl = Number(parameter('ttl'));
            await kv.put(parameter('name'), await request.arrayBuffer(), options);
            return Response.json(null);
        }
        case 'put-many': {
            const bytes = (value) => Uint8Array.from(atob(value), (character) => character.charCodeAt(0));
            const puts = (await request.json()).map(({ name, value, metadata }) =>
                kv.put(name, bytes(value), metadata === undefined ? {} : { metadata: JSON.parse(metadata) }));
            await Promise.all(puts);
            return Response.json(null);
        }
        case 'get': {
            const found = await kv.getWithMetadata(parameter('name'), 'stream');
            if (found.value === null) return Response.json(null, { status: 404 });
            const metadata = encodeURIComponent(JSON.stringify(found.metadata));
            return new Response(found.value, { headers: { metadata } });
        }
        case 'get-many': {
            const names = await request.json();
            const found = await kv.getWithMetadata(names, 'text');
            const pairs = names.map(async (name) => {
                let one = found.get(name);
                // workerd's read of many, unlike Cloudflare's, has neither empty values nor names that are numbers.
                if ((one?.value ?? null) === null) {
                    one = await kv.getWithMetadata(name, 'text');
                }
                return [name, one.value === null ? null : { value: one.value, metadata: one.metadata }];
            });
            return Response.json(await Promise.all(pairs));
        }
        case 'delete':
            await kv.delete(parameter('name'));
            return Response.json(null);
        case 'list': {
            const limit = parameter('limit') && Number(parameter('limit'));
            return Response.json(await kv.list({ prefix: parameter('prefix'), cursor: parameter('cursor'), limit }));
        }
        case 'clear': {
            const { keys, list_complete: complete } = await kv.list();
            await Promise.all(keys.map(({ name }) => kv.delete(name)));
            return Response.json(complete);
        }
        default:
            return new Response('no such operation', { status: 404 });
    }
}

export default {
    async fetch(request, env) {
        try {
            return await operate(request, env);
        } catch (error) {
            // Such as "KV PUT failed: 413 Value length of …": the status is the service's.
            // Without one, it is an argument of the wrong kind, or workerd itself failed.
            const isArgument = error instanceof TypeError || error instanceof SyntaxError;
            const status = Number(/failed: (\d{3})/.exec(error.message)?.[1] ?? (isArgument ? 400 : 500));
            return new Response(error.message, { status });
        }
    },
};
