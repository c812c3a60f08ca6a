"""The Python client against a server: what an agent does, end to end.

    client.py URL                   over HTTP
    client.py -- COMMAND...         over standard input and output; --user NAME is added to the command

Both as a client of the newest revision and as one of the revisions before it.
"""

import asyncio
import json
import sys

from mcp import Client, MCPError, StdioServerParameters
from mcp.types import ElicitResult

NEWEST = "2026-07-28"


def told(result):
    """The answer of a tool that must have worked."""
    assert not result.is_error, result
    text = json.loads(result.content[0].text)
    assert text == result.structured_content, result
    return text


async def agree(_context, params):
    """A user who agrees to everything, and says so."""
    asked.append(params.message)
    return ElicitResult(action="accept", content={"confirm": True})


asked = []


async def look_around(client):
    tools = {tool.name: tool for tool in (await client.list_tools()).tools}
    for name in ["agent_get", "agent_set", "record_save", "record_query", "lock_acquire", "job_list"]:
        assert name in tools, sorted(tools)
        assert tools[name].output_schema["type"] == "object", name
    # Some twenty that everybody has in view; workspaces and registries, where there are any, bring their own.
    optional = ("agreement_", "registry_")
    assert len([name for name in tools if not name.startswith(optional)]) <= 24, sorted(tools)
    assert len(tools) <= 32, sorted(tools)
    resources = [str(resource.uri) for resource in (await client.list_resources()).resources]
    assert "keyward://schema" in resources, resources
    schema = await client.read_resource("keyward://schema")
    assert "[spaces.notes]" in schema.contents[0].text
    assert len((await client.list_resource_templates()).resource_templates) == 5
    prompts = [prompt.name for prompt in (await client.list_prompts()).prompts]
    assert "explore_space" in prompts, prompts
    prompt = await client.get_prompt("explore_space", {"space": "notes"})
    assert "record_list" in prompt.messages[-1].content.text
    try:
        await client.read_resource("keyward://demo/spaces/none")
        raise AssertionError("a space that is not there was read")
    except MCPError:
        pass


async def keep(client, name):
    entry = {"namespace": f"client:{name}", "key": "a/b", "value": {"n": 12345678901234567, "t": "é"}}
    assert told(await client.call_tool("agent_set", entry))["created"]
    at = {"namespace": f"client:{name}", "key": "a/b"}
    read = told(await client.call_tool("agent_get", at))
    assert read["entry"]["value"] == entry["value"], read
    assert told(await client.call_tool("agent_keys", {"namespace": f"client:{name}"}))["keys"] == ["a/b"]
    wrong = await client.call_tool("agent_patch", {**at, "key": "none", "value": {}})
    assert wrong.is_error and "agent_keys" in wrong.content[0].text, wrong


async def remember(client, name):
    path = f"/memories/{name}.md"
    made = await client.call_tool("memory", {"command": "create", "path": path, "file_text": "one\n"})
    assert made.content[0].text == f"File created successfully at: {path}", made
    seen = await client.call_tool("memory", {"command": "view", "path": path})
    assert seen.content[0].text.endswith("     1\tone"), seen
    gone = await client.call_tool("memory", {"command": "view", "path": "/memories/none"})
    assert gone.is_error and "does not exist" in gone.content[0].text, gone


async def save(client, name, owner):
    key = f"user:{owner}:notes:n1"
    note = {"space": "notes", "key": key, "value": {"text": "hello", "tags": ["x"]}}
    saved = told(await client.call_tool("record_save", note))
    assert saved["created"], saved
    again = await client.call_tool("record_save", {**note, "if_version": "none"})
    assert again.is_error and "record_get" in again.content[0].text, again
    found = {"space": "notes", "index": "notes_by_tag", "owner": owner, "equal": ["x"]}
    found = told(await client.call_tool("record_query", found))
    assert [record["key"] for record in found["records"]] == [key], found
    lock = told(await client.call_tool("lock_acquire", {"root": f"page:{name}", "ttl": 30}))
    taken = await client.call_tool("lock_acquire", {"root": f"page:{name}"})
    assert taken.is_error and taken.content[0].text.startswith("locked"), taken
    told(await client.call_tool("lock_release", {"ticket": lock["ticket"]}))


async def confirm(client, name, owner):
    """The user is asked before much is deleted, and the call goes on."""
    asked.clear()
    everything = {"space": "notes", "prefix": f"user:{owner}:"}
    assert told(await client.call_tool("record_delete", everything))["deleted"] == 1
    assert len(asked) == 1 and "1 records" in asked[0], asked
    told(await client.call_tool("agent_delete", {"namespace": f"client:{name}", "prefix": ""}))


async def forty(server, mode):
    """Forty who write at the same time, each on a connection of its own."""

    async def one(n):
        async with Client(server("crowd"), mode=mode) as client:
            entry = {"namespace": f"crowd:{mode}", "key": f"k{n}", "value": n}
            told(await client.call_tool("agent_set", entry))
            part = {"namespace": f"crowd:{mode}", "key": "board", "value": n, "metadata": {f"w{n}": n}}
            told(await client.call_tool("agent_set", part))

    await asyncio.gather(*(one(n) for n in range(40)))
    async with Client(server("crowd"), mode=mode) as client:
        keys = told(await client.call_tool("agent_keys", {"namespace": f"crowd:{mode}"}))["keys"]
        assert len(keys) == 41, keys
        board = told(await client.call_tool("agent_get", {"namespace": f"crowd:{mode}", "key": "board"}))
        assert len(board["entry"]["metadata"]) == 40, board


async def run(server, owner_of):
    for mode in [NEWEST, "legacy", "auto"]:
        name = f"m{mode.replace('-', '')}"
        async with Client(server(name), mode=mode, elicitation_callback=agree) as client:
            if mode != NEWEST:
                assert client.server_info.name == "keyward", client.server_info
            if mode == "auto":
                assert client.protocol_version == NEWEST, client.protocol_version
            await look_around(client)
            await keep(client, name)
            await remember(client, name)
            await save(client, name, owner_of(name))
            await confirm(client, name, owner_of(name))
        print(f"  the Python client, {mode}: good")
    for mode in [NEWEST, "legacy"]:
        await forty(server, mode)
        print(f"  forty Python clients at once, {mode}: good")


def main():
    match sys.argv[1:]:
        case ["--", command, *arguments]:
            # Over standard input and output an agent reaches one user's records.
            def started(user):
                return StdioServerParameters(command=command, args=[*arguments, "--user", user])

            asyncio.run(run(started, lambda user: user))
        case [url]:
            # A server without keys works for the user local.
            asyncio.run(run(lambda _user: url, lambda _user: "local"))
        case _:
            sys.exit(__doc__)


main()
