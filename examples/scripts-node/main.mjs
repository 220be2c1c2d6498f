// The scripts from Node, without the service: node main.mjs FOLDER REDIS_URL
//
// FOLDER is what `stockade scripts export FOLDER` wrote. First a small sale, then every vector, as a port would run them.

import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import Redis from "ioredis";

const [folder, url] = process.argv.slice(2);
// Integers come as text: the client's own reading of 2^53-1 is off by one.
const server = new Redis(url, { stringNumbers: true });
const text = (name) => readFileSync(join(folder, name), "utf8");
const files = readdirSync(folder);

// ioredis sends the SHA and loads the text where it is missing. Without `numberOfKeys`, the first argument says how many.
const names = files.filter((name) => name.endsWith(".lua")).map((name) => name.slice(0, -4));
for (const name of names) server.defineCommand(`stock_${name}`, { lua: text(`${name}.lua`) });
const run = (name, keys, args) => server[`stock_${name}`](keys.length, ...keys, ...args);

// A reply with numbers where the contract has numbers.
function like(wanted, reply) {
  if (Array.isArray(wanted) && Array.isArray(reply)) return reply.map((part, i) => like(wanted[i], part));
  return typeof wanted === "number" ? Number(reply) : reply;
}
const answers = async (wanted, reply, message) => {
  const found = await reply;
  assert.deepEqual(like(wanted, found), wanted, message);
};

async function sell() {
  await server.set("stock:1001", 5);
  const buy = (order, user) =>
    run("seckill", ["stock:1001", "{stock:1001}:buyers", "{stock:1001}:sale"], [order, user, 1]);
  await answers([4, 1, 0], buy("o-1", "u-1"));
  await answers([4, 1, 1], buy("o-1", "u-1"), "the same order again: the first answer");
  await answers([-7, 1, 0], buy("o-2", "u-1"), "once per user");
  await assert.rejects(run("deduct", ["stock:1001"], ["-5"]), /^ReplyError: BADARG quantity/);
  assert.equal(await server.get("stock:1001"), "4");
  await server.flushdb();
}

const typed = (stored) => (typeof stored === "string" ? { string: stored } : stored);

async function put(key, stored) {
  const { string, hash, zset, list, expires } = typed(stored);
  if (string !== undefined) await server.set(key, string);
  if (hash) await server.hset(key, hash);
  if (zset) await server.zadd(key, ...Object.entries(zset).flatMap(([member, score]) => [score, member]));
  if (list) await server.rpush(key, ...list);
  if (expires) await server.pexpire(key, 3600000);
}

async function read(key) {
  switch (await server.type(key)) {
    case "none":
      return undefined;
    case "string":
      return { string: await server.get(key) };
    case "hash":
      return { hash: await server.hgetall(key) };
    case "zset": {
      const flat = await server.zrange(key, 0, -1, "WITHSCORES");
      const pairs = [];
      for (let i = 0; i < flat.length; i += 2) pairs.push([flat[i], Number(flat[i + 1])]);
      return { zset: Object.fromEntries(pairs) };
    }
    default:
      return { list: await server.lrange(key, 0, -1) };
  }
}

async function runVectors() {
  let count = 0;
  for (const name of files.filter((one) => one.endsWith(".json") && one !== "index.json")) {
    const file = JSON.parse(text(name));
    for (const vector of file.vectors) {
      const where = `${file.script}: ${vector.name}`;
      for (const [key, stored] of Object.entries(vector.before ?? {})) await put(key, stored);
      for (const call of vector.calls) {
        const reply = run(call.script ?? file.script, call.keys ?? vector.keys, call.args);
        if (call.error === undefined) await answers(call.reply, reply, where);
        else await assert.rejects(reply, (error) => error.message.startsWith(call.error), where);
      }
      const keys = new Set([...vector.keys, ...Object.keys(vector.before ?? {}), ...Object.keys(vector.after)]);
      for (const key of keys) {
        const wanted = vector.after[key] === undefined ? undefined : { ...typed(vector.after[key]) };
        if (wanted?.expires !== undefined) {
          assert.equal(Number(await server.pttl(key)) > 0, wanted.expires, `${where}: ${key} and its end`);
          delete wanted.expires;
        }
        assert.deepEqual({ ...(await read(key)) }, { ...wanted }, `${where}: ${key}`);
      }
      await server.flushdb();
      count += 1;
    }
  }
  return count;
}

if (Number(await server.dbsize()) > 0) throw new Error("the database is not empty; this example deletes what it finds");
await sell();
console.log(`node: ${names.length} scripts, ${await runVectors()} vectors passed`);
await server.quit();
