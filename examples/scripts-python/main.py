"""The scripts from Python, without the service: python main.py FOLDER REDIS_URL

FOLDER is what `stockade scripts export FOLDER` wrote. First a small sale, then every vector, as a port would run them.
"""

import json
import pathlib
import sys

import redis


def load(server, folder):
    """Every script as a function of keys and arguments. redis-py sends the SHA and loads the text where it is missing."""
    scripts = {}
    for path in sorted(folder.glob("*.lua")):
        scripts[path.stem] = server.register_script(path.read_text(encoding="utf-8"))
    return scripts


def sell(server, scripts):
    server.set("stock:1001", 5)
    buy = lambda order, quantity: scripts["deduct_once"](
        keys=["stock:1001", "{stock:1001}:order:" + order], args=[quantity, 86_400_000]
    )
    assert buy("o-1", 2) == [3, 0], "three left"
    assert buy("o-1", 2) == [3, 1], "the same order again: the first answer, nothing taken"
    assert buy("o-2", 4) == [-1, 0], "short"
    try:
        buy("o-3", -5)
    except redis.ResponseError as error:
        assert str(error).startswith("BADARG quantity"), error
    else:
        raise AssertionError("a negative quantity passed")
    assert server.get("stock:1001") == b"3"
    server.flushdb()


def read(server, key):
    """What a key holds, in the shape that the vectors use."""
    kind = server.type(key).decode()
    text = lambda value: value.decode("utf-8", "replace")
    if kind == "none":
        return None
    if kind == "string":
        return {"string": text(server.get(key))}
    if kind == "hash":
        return {"hash": {text(field): text(value) for field, value in server.hgetall(key).items()}}
    if kind == "zset":
        return {"zset": {text(member): int(score) for member, score in server.zrange(key, 0, -1, withscores=True)}}
    return {"list": [text(item) for item in server.lrange(key, 0, -1)]}


def typed(stored):
    return {"string": stored} if isinstance(stored, str) else stored


def put(server, key, stored):
    stored = typed(stored)
    if "string" in stored:
        server.set(key, stored["string"])
    if "hash" in stored:
        server.hset(key, mapping=stored["hash"])
    if "zset" in stored:
        server.zadd(key, stored["zset"])
    if "list" in stored:
        server.rpush(key, *stored["list"])
    if stored.get("expires"):
        server.pexpire(key, 3_600_000)


def plain(reply):
    if isinstance(reply, list):
        return [plain(part) for part in reply]
    return reply.decode("utf-8", "replace") if isinstance(reply, bytes) else reply


def run_vectors(server, scripts, folder):
    count = 0
    for path in sorted(folder.glob("*.json")):
        if path.stem == "index":
            continue
        file = json.loads(path.read_text(encoding="utf-8"))
        for vector in file["vectors"]:
            where = f"{file['script']}: {vector['name']}"
            for key, stored in vector.get("before", {}).items():
                put(server, key, stored)
            for call in vector["calls"]:
                script = scripts[call.get("script", file["script"])]
                try:
                    reply = plain(script(keys=call.get("keys", vector["keys"]), args=call["args"]))
                except redis.ResponseError as error:
                    assert "error" in call and str(error).startswith(call["error"]), f"{where}: {error}"
                else:
                    assert "reply" in call and reply == call["reply"], f"{where}: {reply}"
            for key in {*vector["keys"], *vector.get("before", {}), *vector["after"]}:
                wanted = vector["after"].get(key)
                wanted = dict(typed(wanted)) if wanted is not None else None
                if wanted is not None and "expires" in wanted:
                    assert (server.pttl(key) > 0) == wanted.pop("expires"), f"{where}: {key} and its end"
                assert read(server, key) == wanted, f"{where}: {key}"
            server.flushdb()
            count += 1
    return count


def main():
    folder, url = pathlib.Path(sys.argv[1]), sys.argv[2]
    server = redis.Redis.from_url(url)
    if server.dbsize():
        sys.exit("the database is not empty; this example deletes what it finds")
    scripts = load(server, folder)
    sell(server, scripts)
    print(f"python: {len(scripts)} scripts, {run_vectors(server, scripts, folder)} vectors passed")


main()
