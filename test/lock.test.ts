import process from "node:process";
import { setTimeout as sleep } from "node:timers/promises";
import type { Redis } from "ioredis";
import t, { type Test as TapTest } from "tap";
import { readEnv } from "../core/platform/env.ts";
import { syncBooking } from "../core/scheduling/calendar-events.ts";
import { keys } from "../core/store/keys.ts";
import { tryLock, withLock } from "../core/store/lock.ts";
import { connect } from "../core/store/redis.ts";
import { startZoom } from "../fixtures/providers/zoom.ts";
import { type RedisServer, startRedis } from "../fixtures/redis.ts";
import { openDesk } from "../fixtures/scheduling/desk.ts";
import { eventually } from "../fixtures/service.ts";

const key = "lock:{test}";
/** Ms after which another process gets a lock that is not renewed. */
const leaseMs = 10_000;

async function open(t: TapTest): Promise<{ server: RedisServer; redis: Redis }> {
  const server = await startRedis({ single: true });
  const redis = connect(readEnv(server.env)).on("error", () => undefined);
  t.teardown(async () => {
    redis.disconnect();
    await server.stop();
  });
  return { server, redis };
}

t.test("a lock whose reply is lost with the connection is held, and free after its work", async (t) => {
  const { redis } = await open(t);
  const set = redis.set.bind(redis) as (...given: unknown[]) => Promise<unknown>;
  // The client sends the command again.
  const twice = async (...given: unknown[]) => {
    await set(...given);
    return set(...given);
  };
  Object.assign(redis, { set: twice });
  t.same(await tryLock(redis, key, async () => "done"), { result: "done" });
  t.equal(await redis.exists(key), 0);
});

/** Work that lasts until its lease ends, and then fails; the ms that it had. */
async function lasting(t: TapTest, redis: Redis): Promise<number> {
  const began = Date.now();
  let had = 0;
  const work = async (lease: AbortSignal): Promise<void> => {
    while (!lease.aborted) await sleep(20);
    had = Date.now() - began;
    lease.throwIfAborted();
  };
  await t.rejects(tryLock(redis, key, work), { code: "service_unavailable" });
  return had;
}

t.test("a lock is held for as long as its work lasts, and is free afterwards", async (t) => {
  const { redis } = await open(t);
  const work = withLock(redis, key, async (lease) => {
    await sleep(leaseMs + 1500);
    return !lease.aborted;
  });
  await sleep(leaseMs + 1000);
  t.equal(await tryLock(redis, key, async () => 1), undefined);
  t.equal(await work, true);
  t.same(await tryLock(redis, key, async () => 1), { result: 1 });
});

t.test("work learns soon that its lock is another's", async (t) => {
  const { redis } = await open(t);
  const had = lasting(t, redis);
  await sleep(100);
  await redis.set(key, "another");
  t.ok((await had) < 4000);
  t.equal(await redis.get(key), "another", "which stays");
});

t.test("work learns that its lock can't be renewed before another can have it", async (t) => {
  const { server, redis } = await open(t);
  const had = lasting(t, redis);
  await sleep(500);
  process.kill(server.pid, "SIGSTOP");
  setTimeout(() => process.kill(server.pid, "SIGCONT"), leaseMs);
  const ms = await had;
  t.ok(ms > leaseMs / 2 && ms <= leaseMs, `${ms} ms`);
});

t.test("work under a lock stays, even if the lock can't be released", async (t) => {
  const { server, redis } = await open(t);
  const work = async (): Promise<string> => {
    await server.kill();
    return "done";
  };
  t.same(await tryLock(redis, key, work), { result: "done" });
});

t.test("a booking's sync without its lock records no result, and the next one finds its event", async (t) => {
  const zoom = await startZoom();
  t.teardown(() => zoom.close());
  const desk = await openDesk(t, { providerKey: "zoom", env: zoom.env, location: "zoom", workers: [] });
  const { runtime } = desk.service;
  const bookingUid = await desk.booked("2026-10-06T10:00:00Z");
  const [lock, booking] = [keys.syncLock("acme", bookingUid), keys.booking("acme", bookingUid)];
  zoom.oauth.expire();
  // Slower than most servers, and not given up: the refresh token is spent by then.
  zoom.oauth.slowness = 6000;
  const sync = syncBooking(runtime, { handle: "acme", bookingUid });
  await eventually(() => zoom.oauth.thinking === 1);
  await runtime.redis.set(lock, "another");
  await t.rejects(sync, { code: "service_unavailable" });
  t.equal(await runtime.redis.hget(booking, "written"), JSON.stringify({ isBegun: true }));
  t.match(await desk.booking(bookingUid), { meetingUrl: null, syncStatus: "OK" });
  await runtime.redis.del(lock);
  zoom.oauth.slowness = 0;
  await syncBooking(runtime, { handle: "acme", bookingUid });
  t.equal(zoom.meetings.size, 1);
  t.ok((await desk.booking(bookingUid)).meetingUrl);
});

t.test("a slow refresh fails its caller within 5 s, and its tokens are stored when they arrive", async (t) => {
  const zoom = await startZoom();
  t.teardown(() => zoom.close());
  const desk = await openDesk(t, { providerKey: "zoom", env: zoom.env, location: "zoom", workers: [] });
  const { runtime } = desk.service;
  const bookingUid = await desk.booked("2026-10-06T10:00:00Z");
  zoom.oauth.expire();
  zoom.oauth.slowness = 7000;
  const began = Date.now();
  await t.rejects(syncBooking(runtime, { handle: "acme", bookingUid }));
  t.ok(Date.now() - began < 5500, `${Date.now() - began} ms`);
  t.match(await desk.booking(bookingUid), { meetingUrl: null, syncStatus: "DEGRADED" });
  await eventually(() => zoom.oauth.thinking === 0);
  await eventually(async () => (await runtime.redis.exists(keys.refreshLock("acme", desk.credentialId))) === 0);
  zoom.oauth.slowness = 0;
  await syncBooking(runtime, { handle: "acme", bookingUid });
  t.equal(zoom.meetings.size, 1, "the refresh token was not spent for nothing");
  t.match(await desk.booking(bookingUid), { syncStatus: "OK" });
});
