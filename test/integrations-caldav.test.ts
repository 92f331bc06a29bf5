import { once } from "node:events";
import { createServer, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import t, { type Test as TapTest } from "tap";
import { grantRole } from "../core/account/handles.ts";
import { batchesOf } from "../core/platform/batches.ts";
import { pullCalendars, readSelected, refreshBusy } from "../core/scheduling/busy-calendars.ts";
import { keys } from "../core/store/keys.ts";
import { startDavProxy } from "../fixtures/providers/dav-proxy.ts";
import { startHostileDav } from "../fixtures/providers/hostile-dav.ts";
import { type LyingDav, multistatus, resource, startLyingDav } from "../fixtures/providers/lying-dav.ts";
import { hasRadicale, type Radicale, startRadicale } from "../fixtures/providers/radicale.ts";
import { afterReply, keyNames } from "../fixtures/redis.ts";
import { openStage } from "../fixtures/scheduling/owner.ts";
import { eventually, type Service, startService } from "../fixtures/service.ts";
import { startReceiver, undocumented } from "../fixtures/webhook-receiver.ts";

const owned = "/v2/handles/acme/scheduling";
const skip = hasRadicale() ? false : "radicale and apache2-utils are not installed";
type Owner = Awaited<ReturnType<Service["handle"]>>;

/** A service at a fixed moment, with a real calendar server beside it. */
async function start(
  t: TapTest,
  env: Record<string, string> = {},
): Promise<{ service: Service; owner: Owner; server: Radicale }> {
  const server = await startRadicale(t);
  const service = await startService(t, { env: { TEST_CLOCK: "2026-10-11T00:00:00Z", ...env }, workers: ["webhooks"] });
  const owner = await service.handle("acme");
  const hours = { startTime: "09:00", endTime: "17:00" };
  const weeklyAvailability = [1, 2, 3, 4, 5].map((day) => ({ day, ...hours }));
  await owner.post(`${owned}/schedules`).send({ timeZone: "Europe/Berlin", weeklyAvailability }).expect(201);
  await owner.post(`${owned}/event-types`).send({ slug: "talk", title: "Talk", durationMinutes: 60 }).expect(201);
  return { service, owner, server };
}

async function connect(
  owner: Owner,
  { url, username, password }: Pick<Radicale, "url" | "username" | "password">,
): Promise<string> {
  const body = { serverUrl: url, username, password };
  return (await owner.post(`${owned}/integrations/caldav/credentials`).send(body).expect(201)).body.credential
    .credentialId;
}

/** Starts of the free slots of a day, as `HH:MM` in UTC. */
async function free({ visitor }: Service, date: string): Promise<string[]> {
  const query = { start: `${date}T00:00:00Z`, end: `${date}T23:59:00Z` };
  const { slots } = (await visitor.get("/v2/public/scheduling/acme/talk/slots").query(query).expect(200)).body;
  return slots.map(({ start }: { start: string }) => start.slice(11, 16));
}

t.test("a calendar server is connected after a real login, and only then", { skip }, async (t) => {
  const { service, owner, server } = await start(t);
  const { url: serverUrl, username, password } = server;
  const path = `${owned}/integrations/caldav/credentials`;
  const refused = async (body: object) => (await owner.post(path).send(body).expect(400)).body.code;
  t.equal(await refused({ serverUrl, username, password: "wrong" }), "caldav_login_failed");
  t.equal(await refused({ serverUrl: "http://127.0.0.1:1", username, password }), "caldav_login_failed");
  const { credential } = (await owner.post(path).send({ serverUrl, username, password }).expect(201)).body;
  t.match(credential, { providerKey: "caldav", account: `alice@${new URL(serverUrl).host}`, status: "OK" });
  t.same((await owner.get(`${owned}/integrations`)).body.credentials, [credential]);
  const stored = JSON.stringify(await service.runtime.redis.hgetall(keys.credential("acme", credential.credentialId)));
  t.notOk(stored.includes(password), "the password is stored sealed");
});

t.test(
  "an address of a calendar server that may not be called is refused by name, a redirect to one too",
  async (t) => {
    const service = await startService(t);
    const owner = await service.handle("acme");
    const inside = "http://10.0.0.1/";
    const server = createServer((_asked, answer) => void answer.writeHead(301, { location: inside }).end());
    await once(server.listen(0, "127.0.0.1"), "listening");
    t.teardown(() => void server.close());
    const moved = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
    const spaced = ["https://cal.example/\r\nX: y", "https://cal.example/my calendar", "\thttps://cal.example/"];
    for (const serverUrl of [inside, moved, "nonsense", "ftp://cal.example/", ...spaced]) {
      const body = { serverUrl, username: "alice", password: "secret" };
      const refused = (await owner.post(`${owned}/integrations/caldav/credentials`).send(body).expect(400)).body;
      t.match(refused, { code: "invalid_request", errors: [{ path: "/serverUrl", message: String }] }, serverUrl);
    }
  },
);

t.test("calendars are listed, and busy times of the selected ones take slots away", { skip }, async (t) => {
  const { service, owner, server } = await start(t);
  const [work, other] = [await server.calendar("office"), await server.calendar("other")];
  const weekly = ["DTSTART:20261012T080000Z", "DTEND:20261012T100000Z"];
  await server.put(work, "series", ...weekly, "RRULE:FREQ=WEEKLY;COUNT=5", "EXDATE:20261019T080000Z");
  await server.put(other, "ignored", "DTSTART:20261012T120000Z", "DTEND:20261012T130000Z");
  const credentialId = await connect(owner, server);
  const { calendars } = (await owner.get(`${owned}/integrations/caldav/calendars`).expect(200)).body;
  t.same(calendars.map(({ name }: { name: string }) => name).sort(), ["office", "other"]);
  t.match(calendars[0], { calendarId: String, credentialId, primary: true, writable: true });
  t.equal((await free(service, "2026-10-12")).length, 8);
  const select = (busyCalendarIds: string[]) =>
    owner.post(`${owned}/selected-calendars`).send({ credentialId, busyCalendarIds });
  t.same((await select([work]).expect(200)).body.selectedCalendars, { credentialId, busyCalendarIds: [work] });
  const full = ["07:00", "08:00", "09:00", "10:00", "11:00", "12:00", "13:00", "14:00"];
  t.same(
    await free(service, "2026-10-12"),
    full.filter((time) => time !== "08:00" && time !== "09:00"),
  );
  t.same(await free(service, "2026-10-19"), full, "an exception of the series");
  t.same((await free(service, "2026-10-26")).length, 6);
  t.equal((await select([`${server.url}/bob/office/`]).expect(400)).body.code, "invalid_request");
  await select([]).expect(200);
  t.same(await free(service, "2026-10-12"), full);
});

t.test("a booking reads calendars again that were read more than 10 s ago", { skip }, async (t) => {
  const { service, owner, server } = await start(t);
  const work = await server.calendar("office");
  const credentialId = await connect(owner, server);
  await owner
    .post(`${owned}/selected-calendars`)
    .send({ credentialId, busyCalendarIds: [work] })
    .expect(200);
  await server.put(work, "new", "DTSTART:20261012T080000Z", "DTEND:20261012T090000Z");
  await service.runtime.redis.hset(keys.busyState("acme"), "at", Date.now() - 10_001);
  const slot = { start: "2026-10-12T08:00:00Z", end: "2026-10-12T09:00:00Z" };
  const body = { attendee: { name: "Ada", email: "ada@example.com" }, slot };
  const taken = await service.visitor.post("/v2/public/scheduling/acme/talk/bookings").send(body).expect(409);
  t.equal(taken.body.code, "scheduling_slot_unavailable");
});

t.test("calendars are pulled on a rhythm by a worker", { skip }, async (t) => {
  const { service, owner, server } = await start(t);
  const work = await server.calendar("office");
  const credentialId = await connect(owner, server);
  await owner
    .post(`${owned}/selected-calendars`)
    .send({ credentialId, busyCalendarIds: [work] })
    .expect(200);
  const waiting = await service.runtime.queues.queue("scheduling").getDelayed();
  t.match(
    waiting.map(({ name, data }) => ({ name, data })),
    [{ name: "scheduling.pull", data: { handle: "acme" } }],
  );
  await server.put(work, "new", "DTSTART:20261012T080000Z", "DTEND:20261012T090000Z");
  await service.startWorkers(["scheduling"]);
  await waiting[0]?.promote();
  await eventually(async () => !(await free(service, "2026-10-12")).includes("08:00"));
  const next = await service.runtime.queues.queue("scheduling").getDelayed();
  const [before, after] = [waiting, next].map((list) => Number(list[0]?.id?.split("-").at(-1)));
  t.equal(after, (before ?? 0) + 300_000, "a pull that begins early is followed by the next one");
});

t.test("a pull that fails for good is followed by the next one", { skip }, async (t) => {
  const { service, owner, server } = await start(t);
  const { redis, queues } = service.runtime;
  const busyCalendarIds = [await server.calendar("office")];
  const credentialId = await connect(owner, server);
  await owner.post(`${owned}/selected-calendars`).send({ credentialId, busyCalendarIds }).expect(200);
  for (const job of await queues.queue("scheduling").getDelayed()) await job.remove();
  await redis.set(keys.busyState("acme"), "no hash");
  await t.rejects(pullCalendars(service.runtime, { handle: "acme" }, { due: 0 }), /WRONGTYPE/);
  const waiting = await queues.queue("scheduling").getDelayed();
  t.match(
    waiting.map(({ name, data }) => ({ name, data })),
    [{ name: "scheduling.pull", data: { handle: "acme" } }],
  );
});

t.test("a server that is away leaves its last word, degrades the account and says so once", { skip }, async (t) => {
  const { service, owner, server } = await start(t);
  const receiver = await startReceiver(t);
  await owner.post(`${owned}/webhooks`).send({ url: receiver.url }).expect(201);
  const work = await server.calendar("office");
  await server.put(work, "one", "DTSTART:20261012T080000Z", "DTEND:20261012T090000Z");
  const credentialId = await connect(owner, server);
  await owner
    .post(`${owned}/selected-calendars`)
    .send({ credentialId, busyCalendarIds: [work] })
    .expect(200);
  await server.stop();
  await refreshBusy(service.runtime, "acme");
  await refreshBusy(service.runtime, "acme");
  t.match((await owner.get(`${owned}/integrations`)).body.credentials, [{ credentialId, status: "DEGRADED" }]);
  t.notOk((await free(service, "2026-10-12")).includes("08:00"));
  const [told] = await eventually(() => receiver.received.length > 0 && receiver.received);
  t.match(told?.event, {
    type: "scheduling.sync.degraded",
    data: { handle: "acme", providerKey: "caldav", credentialId },
  });
  t.equal(receiver.received.length, 1);
  t.same(await undocumented(service, receiver.received), []);
  await server.restart();
  const destination = { credentialId, busyCalendarIds: [], destinationCalendarId: work };
  await owner.post(`${owned}/selected-calendars`).send(destination).expect(200);
  const [account] = (await owner.get(`${owned}/integrations`)).body.credentials;
  t.match(account, { status: "OK", detail: undefined }, "an account that is read no more heals with its selection");
});

t.test("disconnecting gives the time back", { skip }, async (t) => {
  const { service, owner, server } = await start(t);
  const work = await server.calendar("office");
  await server.put(work, "one", "DTSTART:20261012T080000Z", "DTEND:20261012T090000Z");
  const credentialId = await connect(owner, server);
  await owner
    .post(`${owned}/selected-calendars`)
    .send({ credentialId, busyCalendarIds: [work] })
    .expect(200);
  t.notOk((await free(service, "2026-10-12")).includes("08:00"));
  await owner.delete(`${owned}/integrations/caldav/credentials/${credentialId}`).expect(204);
  t.ok((await free(service, "2026-10-12")).includes("08:00"));
  t.equal((await owner.get(`${owned}/integrations/caldav/calendars`).expect(404)).body.code, "integration_not_found");
});

/** A handle with a server whose calendars have the same address for every user; each has an event on Monday, 12 October. */
async function besideSharedAddress(t: TapTest) {
  const dav = await startHostileDav();
  t.teardown(() => dav.close());
  const { service, owner, event, slots } = await openStage(t);
  await event({ slug: "talk", durationMinutes: 60 });
  const hours: Record<string, string> = { alice: "09", bob: "10" };
  dav.attacks.set("objects", (response) => {
    const [user = ""] = atob(response.req.headers.authorization?.slice("Basic ".length) ?? "").split(":");
    const times = `DTSTART:20261012T${hours[user]}0000Z\nDURATION:PT1H`;
    const data = `BEGIN:VCALENDAR\nBEGIN:VEVENT\nUID:1\n${times}\nEND:VEVENT\nEND:VCALENDAR`;
    const properties = `<prop><getetag>"1"</getetag><calendar-data>${data}</calendar-data></prop>`;
    const resource = `<response><href>/calendars/work/1.ics</href><propstat>${properties}</propstat></response>`;
    response.writeHead(207).end(`<multistatus>${resource}</multistatus>`);
  });
  const select = async (username: string): Promise<string> => {
    const credentialId = await connect(owner, { url: dav.url, username, password: "secret" });
    const body = { credentialId, busyCalendarIds: [dav.calendar] };
    await owner.post(`${owned}/selected-calendars`).send(body).expect(200);
    return credentialId;
  };
  const morning = () => slots("talk", "2026-10-12T08:00:00Z", "2026-10-12T12:00:00Z");
  return { service, owner, dav, select, morning };
}

t.test("accounts of a server that gives each user's calendar the same address all take slots", async (t) => {
  const { select, morning } = await besideSharedAddress(t);
  for (const user of ["alice", "bob"]) await select(user);
  t.same(await morning(), ["10-12T11:00"]);
});

t.test("of two requests that disconnect an account at once one does", async (t) => {
  const { owner, credentials } = await startLies(t);
  const [{ credentialId }] = await credentials();
  const path = `${owned}/integrations/caldav/credentials/${credentialId}`;
  const answers = await Promise.all([owner.delete(path), owner.delete(path)]);
  t.same(answers.map(({ status }) => status).sort(), [204, 404]);
});

t.test("an account that is disconnected during a pull gives the time back at the next one", async (t) => {
  const { service, owner, dav, select, morning } = await besideSharedAddress(t);
  const credentialId = await select("alice");
  t.same(await morning(), ["10-12T10:00", "10-12T11:00"]);
  const held: (() => void)[] = [];
  dav.attacks.set("sync", (response) => void held.push(() => response.writeHead(503).end()));
  const reading = refreshBusy(service.runtime, "acme");
  await eventually(() => held.length > 0);
  const leaving = owner.delete(`${owned}/integrations/caldav/credentials/${credentialId}`).expect(204).then();
  const { redis } = service.runtime;
  await eventually(async () => (await redis.exists(keys.selectedCalendars("acme"))) === 0);
  held[0]?.();
  await Promise.all([reading, leaving]);
  await pullCalendars(service.runtime, { handle: "acme" }, { due: 0 });
  t.same(await morning(), ["10-12T09:00", "10-12T10:00", "10-12T11:00"]);
});

/** A service with one calendar, read through a proxy that records the requests. */
async function behindProxy(t: TapTest) {
  const { service, owner, server } = await start(t);
  const proxy = await startDavProxy(t, server.url);
  const calendar = await server.calendar("office");
  await server.put(calendar, "series", "DTSTART:20261012T080000Z", "DTEND:20261012T090000Z", "RRULE:FREQ=WEEKLY");
  await server.put(calendar, "lunch", "DTSTART:20261012T100000Z", "DTEND:20261012T110000Z");
  await server.put(calendar, "late", "DTSTART:20261012T140000Z", "DTEND:20261012T150000Z");
  const select = async () => {
    const credentialId = await connect(owner, { ...server, url: proxy.url });
    const busyCalendarIds = [calendar.replace(server.url, proxy.url)];
    await owner.post(`${owned}/selected-calendars`).send({ credentialId, busyCalendarIds }).expect(200);
  };
  /** Reads again and returns the free times of Monday with the requests. */
  const read = async () => {
    proxy.asked.length = 0;
    await refreshBusy(service.runtime, "acme");
    const fetched = proxy.asked.filter(({ report }) => report === "calendar-multiget");
    const objects = fetched.reduce((sum, one) => sum + one.objects, 0);
    return { free: await free(service, "2026-10-12"), asked: proxy.asked.map(({ report }) => report), objects };
  };
  return { service, server, proxy, calendar, select, read };
}

t.test("only changes of a calendar are read again", { skip }, async (t) => {
  const { service, server, calendar, select, read } = await behindProxy(t);
  await select();
  t.same(await read(), {
    ...{ free: ["07:00", "09:00", "11:00", "12:00", "13:00"], asked: ["sync-collection"], objects: 0 },
  });
  const before = await service.runtime.redis.get(keys.timesVersion("acme"));
  await read();
  t.equal(await service.runtime.redis.get(keys.timesVersion("acme")), before, "kept slots stay good");
  await server.put(calendar, "lunch", "DTSTART:20261012T110000Z", "DTEND:20261012T120000Z");
  await (await server.dav("DELETE", `${calendar}late.ics`)).text();
  t.match(await read(), { free: ["07:00", "09:00", "10:00", "12:00", "13:00", "14:00"], objects: 1 });
  await server.put(calendar, "lunch", "DTSTART:20300101T110000Z", "DTEND:20300101T120000Z");
  t.match(await read(), { free: ["07:00", "09:00", "10:00", "11:00", "12:00", "13:00", "14:00"] });
});

for (const [size, padding, reports] of [
  ["is asked for whole", 0, ["calendar-query"]],
  ["comes in batches where it is too large", 9 * 1_048_576, ["calendar-query", "calendar-query", "calendar-multiget"]],
] as const)
  t.test(`a calendar that is new ${size}`, { skip }, async (t) => {
    const { proxy, select, read } = await behindProxy(t);
    proxy.padding = padding;
    await select();
    const asked = proxy.asked.map(({ report }) => report);
    t.same(
      asked.filter((report) => /^calendar-[qm]/.test(report)),
      reports,
    );
    t.match(await read(), { free: ["07:00", "09:00", "11:00", "12:00", "13:00"] });
  });

t.test("a sync token that the server has lost costs one look at all etags", { skip }, async (t) => {
  const { service, server, calendar, select, read } = await behindProxy(t);
  await select();
  const { redis } = service.runtime;
  const [key = ""] = await keyNames(redis, "calendar-objects:*");
  const reading = JSON.parse((await redis.hget(key, "")) as string);
  const mark = JSON.stringify({ ...JSON.parse(reading.mark), token: "http://radicale.org/ns/sync/lost" });
  await redis.hset(key, "", JSON.stringify({ ...reading, mark }));
  await (await server.dav("DELETE", `${calendar}late.ics`)).text();
  await server.put(calendar, "new", "DTSTART:20261012T120000Z", "DTEND:20261012T130000Z");
  t.same(await read(), {
    free: ["07:00", "09:00", "11:00", "13:00", "14:00"],
    asked: ["sync-collection", "propfind", "calendar-query", "calendar-multiget"],
    objects: 1,
  });
  t.same((await read()).asked, ["sync-collection"]);
});

t.test("a server without sync tokens is read by its ctag and etags", { skip }, async (t) => {
  const { server, proxy, calendar, select, read } = await behindProxy(t);
  proxy.tokenless = true;
  await select();
  t.same(await read(), { free: ["07:00", "09:00", "11:00", "12:00", "13:00"], asked: ["propfind"], objects: 0 });
  await server.put(calendar, "lunch", "DTSTART:20261012T110000Z", "DTEND:20261012T120000Z");
  await (await server.dav("DELETE", `${calendar}late.ics`)).text();
  t.match(await read(), { free: ["07:00", "09:00", "10:00", "12:00", "13:00", "14:00"], objects: 1 });
});

t.test(
  "events that the owner declined block no time, for every address that server and handle know",
  { skip },
  async (t) => {
    const { service, server, proxy, calendar, select, read } = await behindProxy(t);
    proxy.addresses = ["mailto:Alice@Example.com", "/principals/alice/", "urn:uuid:17"];
    const declined = (...addresses: string[]) => addresses.map((address) => `ATTENDEE;PARTSTAT=DECLINED:${address}`);
    const times = (hour: string) => [`DTSTART:20261012T${hour}0000Z`, `DTEND:20261012T${hour}3000Z`];
    await server.put(calendar, "own", ...times("07"), ...declined("mailto:alice@example.com"));
    await server.put(calendar, "uuid", ...times("09"), ...declined("urn:uuid:17", "mailto:bob@example.com"));
    await server.put(calendar, "owner", ...times("11"), ...declined("mailto:acme@example.com"));
    await server.put(calendar, "other", ...times("12"), ...declined("mailto:bob@example.com"));
    const joins = "ATTENDEE;PARTSTAT=ACCEPTED:mailto:alice@example.com";
    await server.put(calendar, "joined", ...times("13"), ...declined("mailto:acme@example.com"), joins);
    await select();
    t.same((await read()).free, ["07:00", "09:00"], "the handle doesn't know its owner's address yet");
    await grantRole(service.runtime.redis, {
      ...{ handle: "acme", userId: "user_acme", role: "OWNER", email: "acme@example.com" },
    });
    t.same((await read()).free, ["07:00", "09:00", "11:00"], "the calendar is read again for it");
    t.same((await read()).asked, ["sync-collection"]);
  },
);

t.test(
  "a calendar's own zone may have any name, and one that can't be read takes no event away",
  { skip },
  async (t) => {
    const { service, server, proxy, calendar, select, read } = await behindProxy(t);
    await server.put(calendar, "floating", "DTSTART:20261012T090000", "DURATION:PT1H");
    const zone = (...lines: string[]) =>
      ["BEGIN:VCALENDAR", "VERSION:2.0", "BEGIN:VTIMEZONE", ...lines, "END:VTIMEZONE", "END:VCALENDAR"].join("&#13;\n");
    const rules = [
      "BEGIN:STANDARD",
      "DTSTART:20200101T000000",
      "TZOFFSETFROM:-0200",
      "TZOFFSETTO:-0200",
      "END:STANDARD",
    ];
    const told: [string, string][] = [
      [zone("TZID:Eastern Standard Time"), "13:00"],
      [zone("TZID:custom", "X-LIC-LOCATION:America/New_York"), "13:00"],
      [zone("TZID:My Zone", ...rules), "11:00"],
      [zone("TZID:My Zone"), "07:00"],
      ["rubbish", "07:00"],
    ];
    for (const [calendarZone, taken] of told) {
      proxy.calendarZone = calendarZone;
      for (const key of await keyNames(service.runtime.redis, "calendar-objects:*"))
        await service.runtime.redis.del(key);
      await select();
      const all = ["07:00", "09:00", "11:00", "12:00", "13:00"];
      t.same(
        (await read()).free,
        all.filter((time) => time !== taken),
        calendarZone,
      );
    }
  },
);

t.test("an object that can't be read leaves the others as they are", { skip }, async (t) => {
  const { server, calendar, select, read } = await behindProxy(t);
  await server.put(calendar, "endless", "DTSTART:20261012T090000Z", "DTEND:20261012T093000Z", "RRULE:FREQ=SECONDLY");
  await select();
  t.match(await read(), { free: ["07:00", "09:00", "11:00", "12:00", "13:00"] });
});

t.test("a booking goes by the last word of a server that doesn't answer", { skip }, async (t) => {
  const { service, proxy, select } = await behindProxy(t);
  await select();
  proxy.holds = true;
  await service.runtime.redis.hset(keys.busyState("acme"), "at", Date.now() - 61_000);
  const book = (start: string, end: string) => {
    const body = { attendee: { name: "Ada", email: "ada@example.com" }, slot: { start, end } };
    return service.visitor.post("/v2/public/scheduling/acme/talk/bookings").send(body);
  };
  await book("2026-10-12T08:00:00Z", "2026-10-12T09:00:00Z").expect(409);
  await book("2026-10-12T09:00:00Z", "2026-10-12T10:00:00Z").expect(201);
  t.ok(proxy.asked.some(({ report }) => report === "sync-collection"));
});

/** A service that reads the calendar of a server in the test's hands; `read` reads it again. */
async function startLies(t: TapTest, { hasTokens = true } = {}) {
  const dav = await startLyingDav();
  t.teardown(() => dav.close());
  const { service, owner, event, slots } = await openStage(t);
  await event({ slug: "talk", title: "Talk", durationMinutes: 60 });
  const credentialId = await connect(owner, { url: dav.url, username: "alice", password: "secret" });
  dav.hasTokens = hasTokens;
  dav.put("first", "DTSTART:20261012T100000Z", "DTEND:20261012T110000Z");
  const select = () =>
    owner
      .post(`${owned}/selected-calendars`)
      .send({ credentialId, busyCalendarIds: [dav.calendar] })
      .expect(200);
  await select();
  return {
    ...{ dav, service, owner, select },
    read: () => readSelected(service.runtime, "acme"),
    credentials: async () => (await owner.get(`${owned}/integrations`)).body.credentials,
    /** Hours of 12 October that are taken, from 9 to 16. */
    async taken(): Promise<number[]> {
      const found = await slots("talk", "2026-10-12T00:00:00Z", "2026-10-12T23:59:00Z");
      return [9, 10, 11, 12, 13, 14, 15, 16].filter((hour) => !found.some((slot) => Number(slot.slice(6, 8)) === hour));
    },
  };
}

/** Answers fetches of objects with these responses, until the test ends the lie. */
function sendInstead(dav: LyingDav, ...responses: string[]): void {
  dav.lie = ({ body }, response) => body.includes("calendar-multiget") && multistatus(response, responses);
}

t.test("a changed event that the server fails to send keeps its last time, and is fetched again", async (t) => {
  for (const hasTokens of [true, false]) {
    const { dav, read, taken, credentials } = await startLies(t, { hasTokens });
    const said = hasTokens ? "with sync tokens" : "by etags";
    dav.put("other", "DTSTART:20261012T120000Z", "DTEND:20261012T130000Z");
    sendInstead(dav);
    await read();
    t.same(await taken(), [10], `${said}: left out`);
    dav.lie = () => false;
    await read();
    t.same(await taken(), [10, 12], said);
    dav.put("other", "DTSTART:20261012T140000Z", "DTEND:20261012T150000Z");
    for (const code of [500, 403, 423, 507]) {
      sendInstead(dav, resource("/office/other.ics", code));
      await read();
      t.same(await taken(), [10, 12], `${said}: ${code}`);
    }
    t.match(await credentials(), [{ status: "OK" }], "one object is not the account");
    dav.lie = () => false;
    await read();
    t.same(await taken(), [10, 14], said);
    dav.objects.delete("/office/other.ics");
    await read();
    t.same(await taken(), [10], `${said}: removed`);
  }
});

t.test(
  "changed events that are large are fetched in smaller batches, and one that is too large hides no other",
  async (t) => {
    const { dav, read, taken, credentials } = await startLies(t);
    const file = (megabytes: number): string => `ATTACH:${"x".repeat(megabytes * 1_048_576)}`;
    for (const hour of [12, 13, 14])
      dav.put(`large-${hour}`, `DTSTART:20261012T${hour}0000Z`, "DURATION:PT1H", file(1.5));
    dav.put("endless", "DTSTART:20261012T150000Z", "DURATION:PT1H", file(4.5));
    await read();
    t.same(await taken(), [10, 12, 13, 14]);
    t.match(await credentials(), [{ status: "OK" }]);
  },
);

t.test("a server that sends none of many events is told to the owner, and read again", async (t) => {
  const { dav, read, taken, credentials } = await startLies(t);
  for (let at = 0; at < 300; at++) dav.put(`more-${at}`, "DTSTART:20261012T120000Z", "DTEND:20261012T130000Z");
  sendInstead(dav);
  await read();
  t.match(await credentials(), [{ status: "DEGRADED", detail: /does not send its events/ }]);
  dav.lie = () => false;
  await read();
  t.same(await taken(), [10, 12]);
  t.match(await credentials(), [{ status: "OK" }]);
});

t.test("an incomplete listing and a page instead of one remove no event", async (t) => {
  const { dav, read, taken, credentials } = await startLies(t, { hasTokens: false });
  dav.put("other", "DTSTART:20261012T120000Z", "DTEND:20261012T130000Z");
  await read();
  const part = [resource("/office/other.ics", "<getetag>1</getetag>"), resource("/office/", 507)];
  const lies: [RegExp, LyingDav["lie"]][] = [
    [/only a part/, ({ method }, response) => method === "REPORT" && multistatus(response, part)],
    [/something else than WebDAV/, ({ method }, response) => method === "REPORT" && !!response.end("<p>Sign in</p>")],
    [/something else/, ({ method }, response) => method === "REPORT" && !!response.writeHead(204).end()],
  ];
  for (const [detail, lie] of lies) {
    dav.lie = lie;
    await read();
    t.same(await taken(), [10, 12], String(detail));
    t.match(await credentials(), [{ status: "DEGRADED", detail }]);
  }
  dav.lie = () => false;
  dav.objects.delete("/office/other.ics");
  await read();
  t.same(await taken(), [10]);
  t.match(await credentials(), [{ status: "OK" }]);
});

t.test("a sync token at which the server fails costs one look at all etags", async (t) => {
  const { dav, read, taken, credentials } = await startLies(t);
  for (const code of [400, 403, 409, 412, 500, 501]) {
    dav.put("other", "DTSTART:20261012T120000Z", "DTEND:20261012T130000Z");
    dav.lie = ({ body }, response) => body.includes("sync-collection") && !!response.writeHead(code).end();
    await read();
    t.same(await taken(), [10, 12], String(code));
    t.match(await credentials(), [{ status: "OK" }]);
    dav.lie = () => false;
    dav.objects.delete("/office/other.ics");
    await read();
    t.same(await taken(), [10], String(code));
  }
});

t.test("an endless sync token is not stored", async (t) => {
  const { dav, read, taken, credentials } = await startLies(t);
  dav.put("other", "DTSTART:20261012T120000Z", "DTEND:20261012T130000Z");
  dav.lie = ({ body }, response) => body.includes("sync-collection") && multistatus(response, [], "t".repeat(2 ** 20));
  await read();
  t.match(await credentials(), [{ status: "DEGRADED", detail: /sync token is too long/ }]);
  dav.lie = () => false;
  await read();
  t.same(await taken(), [10, 12]);
});

t.test("strangers' invitations that are made to be hard to read hide no other event", async (t) => {
  const { dav, read, taken, credentials } = await startLies(t);
  const often = ["DTSTART:20260901T001400Z", "DTEND:20260901T001500Z", "RRULE:FREQ=MINUTELY;INTERVAL=15"];
  for (const name of ["often-1", "often-2", "often-3"]) dav.put(name, ...often, "EXDATE:20261012T001400Z");
  for (const name of ["slow-1", "slow-2"]) {
    dav.put(name, "DTSTART;TZID=Slow:20261012T140000", "DTEND;TZID=Slow:20261012T150000");
    const object = dav.objects.get(`/office/${name}.ics`) as { data: string };
    object.data = object.data.replace("BEGIN:VEVENT", [...slowZone, "BEGIN:VEVENT"].join("\r\n"));
  }
  dav.put("last", "DTSTART:20261012T160000Z", "DTEND:20261012T170000Z");
  await read();
  t.match(await credentials(), [{ status: "OK" }]);
  for (const name of ["often-1", "often-2", "often-3"]) dav.objects.delete(`/office/${name}.ics`);
  await read();
  t.same(await taken(), [10, 16]);
});

/** A zone whose offset changes every second. */
const slowZone = [
  ...["BEGIN:VTIMEZONE", "TZID:Slow", "BEGIN:STANDARD", "DTSTART:20000101T000000", "RRULE:FREQ=SECONDLY"],
  ...["TZOFFSETFROM:+0100", "TZOFFSETTO:+0200", "END:STANDARD", "END:VTIMEZONE"],
];

t.test("events that can't be read are logged without their content", async (t) => {
  const { dav, read, service, taken } = await startLies(t);
  const logged: unknown[] = [];
  t.intercept(service.runtime.log, "warn", { value: (...line: unknown[]) => void logged.push(line) });
  dav.put("line", "DTSTART:20261012T120000Z", 'SUMMARY;X="Secret talk with Bob');
  dav.put("rule", "DTSTART:20261012T120000Z", "DTEND:20261012T130000Z", "RRULE:FREQ=SECRET");
  dav.put("length", "DTSTART:20261012T120000Z", "DURATION:Secret");
  await read();
  t.match(logged, [[{ objects: 3, fault: String }, "calendar.objects_unreadable"]]);
  t.notMatch(JSON.stringify(logged), /secret|Bob/i);
  t.same(await taken(), [10]);
});

t.test("a calendar of another origin hides none of the server's own", async (t) => {
  const { dav, owner } = await startLies(t);
  const calendar = "<resourcetype><calendar/></resourcetype>";
  const list = (...hrefs: string[]) => {
    const responses = hrefs.map((href) => resource(href, calendar));
    dav.lie = ({ body }, response) => body.includes("resourcetype") && multistatus(response, responses);
    return owner.get(`${owned}/integrations/caldav/calendars`);
  };
  const { calendars } = (await list("https://other.test/office/", "http://[", "/office/").expect(200)).body;
  t.match(calendars, [{ calendarId: dav.calendar, primary: true }]);
  t.match((await list("https://other.test/office/").expect(503)).body, { detail: /another origin/ });
});

t.test("each report has the depth of its standard", async (t) => {
  const { dav, read } = await startLies(t);
  dav.put("other", "DTSTART:20261012T120000Z", "DTEND:20261012T130000Z");
  await read();
  const depths = dav.requests.map(({ body, headers }) => [/^<[cd]:([a-z-]+)/.exec(body)?.[1], headers.depth]);
  const depthOf = (report: string) => new Set(depths.filter(([name]) => name === report).map(([, depth]) => depth));
  t.same(depthOf("calendar-query"), new Set(["1"]));
  t.same(depthOf("sync-collection"), new Set(["0"]), "servers may refuse others (RFC 6578, section 3.2)");
  t.same(depthOf("calendar-multiget"), new Set([undefined]));
});

t.test("a calendar is writable unless its server says otherwise", async (t) => {
  const { dav, owner } = await startLies(t);
  const told = (status: number, ...privileges: string[]): string => {
    const set = privileges.map((name) => `<privilege><${name}/></privilege>`).join("");
    const property = `<current-user-privilege-set>${set}</current-user-privilege-set>`;
    return `<propstat><prop>${property}</prop><status>HTTP/1.1 ${status} Any</status></propstat>`;
  };
  for (const [privileges, writable] of [
    [told(404), true],
    [told(200, "read", "read-current-user-privilege-set"), false],
    [told(200, "read", "write-properties"), false],
    [told(200, "read", "write"), true],
    [told(200, "all"), true],
  ] as const) {
    const calendar = resource("/office/", "<resourcetype><calendar/></resourcetype>");
    const response = calendar.replace("</response>", `${privileges}</response>`);
    dav.lie = ({ body }, answer) => body.includes("resourcetype") && multistatus(answer, [response]);
    const { calendars } = (await owner.get(`${owned}/integrations/caldav/calendars`).expect(200)).body;
    t.match(calendars, [{ writable }], privileges);
  }
});

t.test("a server is found at its well-known address, whatever its root answers", async (t) => {
  const { dav, owner } = await startLies(t);
  const body = { serverUrl: dav.url, username: "bob", password: "secret" };
  for (const status of [403, 404, 405, 501]) {
    dav.lie = ({ path, body }, response) => {
      if (path === "/") return Boolean(response.writeHead(status).end());
      const principal = "<current-user-principal><href>/dav/bob/</href></current-user-principal>";
      return body.includes("principal") && multistatus(response, [resource(path, principal)]);
    };
    await owner.post(`${owned}/integrations/caldav/credentials`).send(body).expect(201);
  }
});

t.test("an account whose server is slow delays neither the others of its handle nor a booking", async (t) => {
  const { dav, read, taken, owner, service } = await startLies(t);
  const slow = await startLyingDav();
  t.teardown(() => slow.close());
  for (const username of ["bob", "carol"]) {
    const credentialId = await connect(owner, { url: slow.url, username, password: "secret" });
    await owner
      .post(`${owned}/selected-calendars`)
      .send({ credentialId, busyCalendarIds: [slow.calendar] })
      .expect(200);
  }
  /** Ms after which a server that says nothing is given up. */
  const silence = 4000;
  const held: ServerResponse[] = [];
  slow.lie = ({ method }, response) => method === "REPORT" && held.push(response) > 0;
  const attendee = { name: "Ada", email: "ada@example.com" };
  /** The status of a booking at the hour of a new event; it reads the calendars again. */
  const bookBeside = async (hour: number): Promise<number> => {
    dav.put(`at-${hour}`, `DTSTART:20261012T${hour}0000Z`, `DTEND:20261012T${hour + 1}0000Z`);
    await service.runtime.redis.hset(keys.busyState("acme"), "at", Date.now() - 60_000);
    const slot = { start: `2026-10-12T${hour}:00:00Z`, end: `2026-10-12T${hour + 1}:00:00Z` };
    const since = Date.now();
    const reply = await service.visitor.post("/v2/public/scheduling/acme/talk/bookings").send({ attendee, slot });
    t.ok(Date.now() - since < silence, "the booking waited for less than the server's silence");
    if (reply.status === 409) t.equal(reply.body.code, "scheduling_slot_unavailable");
    return reply.status;
  };
  // A booking waits 1.5 s, in which a loaded machine may not read the quick account: then another one is tried.
  const statuses: number[] = [];
  for (const hour of [11, 12, 13]) {
    if (statuses.at(-1) === 409) break;
    if (statuses.length > 0) await read();
    statuses.push(await bookBeside(hour));
  }
  t.equal(statuses.at(-1), 409, "a booking counts the quick account while the slow one is read");
  await read();
  dav.put("third", "DTSTART:20261012T140000Z", "DTEND:20261012T150000Z");
  let ended = false;
  const reading = read().then(() => {
    ended = true;
  });
  await eventually(async () => (await taken()).includes(14));
  t.notOk(ended, "the slow server is still being read");
  slow.lie = () => false;
  for (const response of held) response.destroy();
  await reading;
});

t.test("a slow reading of another process brings back no calendar that was deselected meanwhile", async (t) => {
  const { dav, taken, owner, service, credentials } = await startLies(t);
  const held: ServerResponse[] = [];
  dav.lie = ({ method }, response) => method === "REPORT" && held.push(response) > 0;
  const reading = pullCalendars(service.runtime, { handle: "acme" }, { due: 0 });
  await eventually(() => held.length > 0);
  dav.lie = () => false;
  t.same(await taken(), [10]);
  const [{ credentialId }] = await credentials();
  await owner.post(`${owned}/selected-calendars`).send({ credentialId, busyCalendarIds: [] }).expect(200);
  t.same(await taken(), []);
  for (const response of held) response.destroy();
  await reading;
  t.same(await taken(), []);
});

t.test("a slow reading of another process overwrites no newer one", async (t) => {
  const { dav, read, taken, service } = await startLies(t);
  const held: ServerResponse[] = [];
  dav.lie = ({ body }, response) => body.includes("calendar-multiget") && held.push(response) > 0;
  dav.put("other", "DTSTART:20261012T120000Z", "DTEND:20261012T130000Z");
  const { etag, data } = dav.objects.get("/office/other.ics") ?? {};
  const reading = pullCalendars(service.runtime, { handle: "acme" }, { due: 0 });
  await eventually(() => held.length > 0);
  dav.lie = () => false;
  dav.put("other", "DTSTART:20261012T140000Z", "DTEND:20261012T150000Z");
  await read();
  t.same(await taken(), [10, 14]);
  const old = resource("/office/other.ics", `<getetag>${etag}</getetag><calendar-data>${data}</calendar-data>`);
  for (const response of held) multistatus(response, [old]);
  await reading;
  t.same(await taken(), [10, 14]);
  t.same(await keyNames(service.runtime.redis, "calendar-draft:*"), []);
});

t.test("busy times of a selection that has ended meanwhile replace no others", async (t) => {
  const { taken, owner, service, credentials } = await startLies(t);
  const [{ credentialId }] = await credentials();
  await service.runtime.redis.hset(keys.busyState("acme"), "source", "another");
  const selection = { credentialId, busyCalendarIds: [] };
  const deselect = () => owner.post(`${owned}/selected-calendars`).send(selection).expect(200);
  afterReply(service.runtime.redis, { name: "hscan" }, deselect);
  await pullCalendars(service.runtime, { handle: "acme" }, { due: 0 });
  t.same(await taken(), []);
});

t.test("a pull that found no calendar clears no busy times of one that was selected meanwhile", async (t) => {
  const { taken, owner, service, credentials, select } = await startLies(t);
  const [{ credentialId }] = await credentials();
  await owner.post(`${owned}/selected-calendars`).send({ credentialId, busyCalendarIds: [] }).expect(200);
  t.same(await taken(), []);
  // The pull reads the selection at its beginning and once it has read the calendars.
  afterReply(service.runtime.redis, { name: "hgetall", nth: 2 }, select);
  await pullCalendars(service.runtime, { handle: "acme" }, { due: 0 });
  t.same(await taken(), [10]);
});

t.test("accounts of slow servers are read after the others of their handle", async (t) => {
  const service = await startService(t);
  const owner = await service.handle("acme");
  const [slow, quick] = [await startHostileDav(), await startHostileDav()];
  t.teardown(() => [slow, quick].map((dav) => dav.close()));
  for (const [username, { url: serverUrl, calendar }] of [
    ["alice", slow],
    ["bob", slow],
    ["carol", quick],
  ] as const) {
    const credentialId = await connect(owner, { url: serverUrl, username, password: "secret" });
    const selected = { credentialId, busyCalendarIds: [calendar] };
    await owner.post(`${owned}/selected-calendars`).send(selected).expect(200);
  }
  slow.attacks.set("sync", (response) =>
    setTimeout(() => response.writeHead(207).end('<multistatus xmlns="DAV:"/>'), 1500),
  );
  const read = (): Promise<void> => refreshBusy(service.runtime, "acme");
  await read();
  quick.asked.length = 0;
  const reading = read();
  await eventually(() => quick.asked.length > 0, 1400);
  await reading;
  const { credentials } = (await owner.get(`${owned}/integrations`)).body;
  t.match(credentials, [{ status: "OK" }, { status: "OK" }, { status: "OK" }]);
});

t.test("a calendar that grows too large keeps its last time until it is read as a whole", async (t) => {
  const { dav, read, taken, service, credentials } = await startLies(t);
  const [key = ""] = await keyNames(service.runtime.redis, "calendar-objects:*");
  const many = Array.from({ length: 39_999 }, (_, at) => [`gone-${at}`, '["1"]']);
  for (const some of batchesOf(many, 1000)) await service.runtime.redis.hset(key, ...some.flat());
  dav.put("other", "DTSTART:20261012T120000Z", "DTEND:20261012T130000Z");
  dav.put("third", "DTSTART:20261012T140000Z", "DTEND:20261012T150000Z");
  await read();
  t.match(await credentials(), [{ status: "DEGRADED", detail: /more than 40000 events/ }]);
  t.same(await taken(), [10]);
  await read();
  t.match(await credentials(), [{ status: "OK" }]);
  t.same(await taken(), [10, 12, 14]);
});
