import { Buffer } from "node:buffer";
import t from "tap";
import { Metrics } from "../api/metrics.ts";
import type { Row } from "../api/route.ts";
import { rows } from "../api/rows.ts";
import type { Runtime } from "../core/platform/runtime.ts";
import { startService } from "../fixtures/service.ts";

/** Every row that returns a list in pages; a new row is tested as soon as it exists. */
const lists = rows(new Metrics({} as Runtime)).filter(
  ({ method, input }) => method === "GET" && Object.hasOwn((input.properties ?? {}) as object, "cursor"),
);

const pages = "/v2/handles/acme/pages";

t.test("every list refuses cursors of other lists and of other handles, and malformed ones", async (t) => {
  const service = await startService(t);
  const owner = await service.handle("acme");
  await service.handle("other", { account: "acct_acme", owner: "user_acme" });
  await owner.post("/v2/handles/acme/campaigns").send({ campaignId: "cmp_spring", name: "Spring" }).expect(201);
  const hook = await owner
    .post("/v2/handles/acme/scheduling/webhooks")
    .send({ url: "http://127.0.0.1:1/hook" })
    .expect(201);
  for (const pageSlug of ["a", "b"]) await owner.post(pages).send({ pageSlug, title: "A" }).expect(201);
  const cursor = (await owner.get(`${pages}?limit=1`).expect(200)).body.nextCursor as string;
  await owner.get(`${pages}?limit=1&cursor=${cursor}`).expect(200);
  for (const place of ["zzz yyy", "0 nothing"]) {
    const mac = Buffer.from(cursor, "base64url").subarray(0, 43);
    const moved = Buffer.concat([mac, Buffer.from(place)]).toString("base64url");
    await owner.get(`${pages}?limit=1&cursor=${moved}`).expect(400);
  }
  t.ok(lists.length > 15);
  for (const row of lists)
    for (const [name, wrong] of Object.entries({
      foreign: cursor,
      altered: `${cursor}A`,
      garbage: "%00%7F",
      empty: "",
    })) {
      const { status, body } = await owner.get(`${addressOf(row, hook.body.webhook.webhookId)}cursor=${wrong}`);
      t.match(
        { status, ...body },
        { status: 400, code: "invalid_request", errors: [{ path: "/cursor" }] },
        `${row.path}, ${name}`,
      );
    }
});

/** A list's address up to its cursor; for pages that of the other handle. */
function addressOf({ path }: Row, webhookId: string): string {
  const handle = path === "/v2/handles/:handle/pages" ? "other" : "acme";
  const named = { handle, campaignId: "cmp_spring", webhookId, pageSlug: "a" } as Record<string, string>;
  const filled = path.replace(/:(\w+)/g, (_, name: string) => named[name] ?? "");
  return path.endsWith("/email/events") ? `${filled}?purpose=CALENDAR&` : `${filled}?`;
}

t.test("a list continues behind an item that was deleted, or deleted and created again", async (t) => {
  // A clock that stands still: the items are of the same age.
  const clocks = [{}, { TEST_CLOCK: "2027-03-01T08:00:00Z", TEST_CLOCK_RATE: "0.000001" }];
  for (const env of clocks) {
    const owner = await (await startService(t, { env })).handle("acme");
    const create = (pageSlug: string) => owner.post(pages).send({ pageSlug, title: "A" }).expect(201);
    for (const slug of ["a", "b", "c", "d"]) await create(slug);
    const slugs = (body: { pages: { pageSlug: string }[] }) => body.pages.map(({ pageSlug }) => pageSlug);
    const first = (await owner.get(`${pages}?limit=2`).expect(200)).body;
    t.same(slugs(first), ["d", "c"]);
    const rest = async () => slugs((await owner.get(`${pages}?cursor=${first.nextCursor}`).expect(200)).body);
    await owner.delete(`${pages}/c`).expect(204);
    t.same(await rest(), ["b", "a"]);
    await create("c");
    t.same(await rest(), ["b", "a"]);
  }
});

t.test("a list's limit is clamped to 100, however large it is", async (t) => {
  const service = await startService(t);
  const owner = await service.handle("acme");
  for (const limit of ["1", "101", "9007199254740993", "99999999999999999999"])
    await owner.get(`${pages}?limit=${limit}`).expect(200);
  for (const limit of ["0", "-1", "-99999999999999999999", "1.5", "1e2", "0x10", ""])
    t.match((await owner.get(`${pages}?limit=${limit}`).expect(400)).body.errors, [{ path: "/limit" }], limit);
  const { errors } = (await owner.get(`${pages}?limit=0`).expect(400)).body;
  t.same(errors, [{ path: "/limit", message: "must be at least 1" }]);
});

t.test("a list's start may be a date, and a malformed instant is refused with an example", async (t) => {
  const service = await startService(t);
  const owner = await service.handle("acme");
  const events = (since: string) => owner.get(`/v2/handles/acme/email/events?since=${since}`);
  await events("2026-11-01").expect(200);
  await events("2026-11-01T00:00:00%2B01:00").expect(200);
  await owner.get("/v2/handles/acme/leads?since=2026-11-01").expect(200);
  for (const wrong of ["2026-02-30", "yesterday", "2026-11"])
    t.match(
      (await events(wrong).expect(400)).body.errors,
      [{ path: "/since", message: /such as 2026-11-01, or/ }],
      wrong,
    );
  const spaced = (await events("2026-11-01T00:00:00+01:00").expect(400)).body;
  t.match(spaced.errors, [{ path: "/since", message: /plus sign is written as %2B/ }]);
  const local = (await events("2026-11-01 09:30").expect(400)).body;
  t.notMatch(local.errors[0].message, "%2B", "no plus sign is missing there");
});
