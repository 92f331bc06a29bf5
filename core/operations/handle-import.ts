import { type ArrivingHandle, beginImport, finishImport } from "../account/face.ts";
import { abandonSends } from "../campaigns/face.ts";
import { adoptMessages, importDomain } from "../email/face.ts";
import { reindexDocuments } from "../knowledge/face.ts";
import { Fail, invalid } from "../platform/errors.ts";
import { type Role, roles, type Store } from "../platform/runtime.ts";
import { rebindCredentials, resumeBookings, resumePulls } from "../scheduling/face.ts";
import { keys } from "../store/keys.ts";
import { tryLock } from "../store/lock.ts";
import { pipelined } from "../store/redis.ts";
import { rebindWebhooks } from "../webhooks/face.ts";
import { type ExportedKey, type ExportHeader, openExport } from "./handle-export.ts";
import { isCarried, KEY_BATCH, removeKeys } from "./handle-keys.ts";
import { type Rename, type Value, valueTypes } from "./key-values.ts";

/** Another name or account for the arriving handle. */
type Renamed = Partial<Record<"handle" | "account", string | undefined>>;

/**
 * Imports a file that `exportHandle` wrote, under another handle or account if asked. The whole file is checked before the first write.
 * Until the import is complete the handle answers like an unknown one, and an interrupted run can be repeated. No mail is sent and no
 * webhook is called; documents are indexed, and reminders of future bookings are scheduled. Returns what was done, and what is left to the
 * owner: domains to prove, webhooks to rotate, accounts to connect. `invalid_request` for an invalid file and for an existing handle.
 */
export async function importHandle(store: Store, { file, ...named }: { file: string } & Renamed) {
  const arriving = await readExport(file, named);
  const done = await tryLock(store.redis, keys.handleImport, (lease) => writeHandle(store, { file, arriving, lease }));
  if (done === undefined) throw new Fail("service_unavailable", { detail: "Another import is in progress; retry." });
  return done.result;
}

/** The handle, after the whole file was checked. */
async function readExport(file: string, { handle, account }: Renamed): Promise<ArrivingHandle> {
  const { header, keys: exported } = await openExport(file);
  let fields: Record<string, string> | undefined;
  for await (const one of exported) if (one.key === keys.handle(header.handle)) fields = importedFields(one);
  if (fields === undefined) throw invalid("/file", `has no record of ${header.handle}`);
  const { entitlements } = header;
  const members = header.members.filter((one): one is typeof one & { role: Role } => roles.includes(one.role as Role));
  return { handle: handle ?? header.handle, account: account ?? header.account, fields, entitlements, members };
}

function importedFields({ type, value }: ExportedKey): Record<string, string> {
  const record = type === "hash" ? (value as Record<string, Value>) : {};
  const all = Object.entries({ since: record.createdAt, ...record });
  const own = all.filter(([name, stored]) => /^(mailWeight$|since$|setting:)/.test(name) && typeof stored === "string");
  return Object.fromEntries(own) as Record<string, string>;
}

/** Writes the keys, then repairs what they refer to: secrets, waiting mails and sends, domains, the index, and jobs. */
async function writeHandle(
  store: Store,
  { file, arriving, lease }: { file: string; arriving: ArrivingHandle; lease: AbortSignal },
) {
  const { redis } = store;
  const { handle, account } = arriving;
  await beginImport(store, arriving);
  // Left by an earlier run.
  await removeKeys(redis, handle);
  const { header, keys: exported } = await openExport(file);
  const count = await writeKeys(store, exported, { header, handle, lease });
  const moved = { from: header.handle, handle };
  const webhooksToRotate = await rebindWebhooks(store, moved);
  const accountsToConnect = await rebindCredentials(store, moved);
  const { cancelledMails } = await adoptMessages(store, handle);
  const deniedSends = await abandonSends(store, handle);
  const domains = await importDomains(store, header, arriving);
  // Processes cache passages by this counter: it starts above that of an erased handle of the same name.
  await redis.hset(keys.knowledge(handle), "version", Date.now());
  const documents = await reindexDocuments(store, handle);
  const reminders = await resumeBookings(store, handle);
  // A pull would forget the busy times of accounts that were lost.
  if (accountsToConnect.length === 0) await resumePulls(store, handle);
  lease.throwIfAborted();
  return {
    ...{ handle, account, keys: count, documents, reminders, ...domains, webhooksToRotate, accountsToConnect },
    ...{ cancelledMails, deniedSends, ...(await finishImport(store, arriving)) },
  };
}

async function importDomains(store: Store, header: ExportHeader, { handle, account }: ArrivingHandle) {
  const done = { domains: [] as string[], domainsTaken: [] as string[] };
  for (const one of header.domains) {
    const isOurs = await importDomain(store, { handle, account, from: header.account }, one);
    done[isOurs ? "domains" : "domainsTaken"].push(one.domain);
  }
  return done;
}

/** Writes the keys that are carried, unless they have expired since, and returns their number. */
async function writeKeys(
  { redis, env }: Store,
  exported: AsyncIterable<ExportedKey>,
  { header, handle, lease }: { header: ExportHeader; handle: string; lease: AbortSignal },
): Promise<number> {
  const rename = renamer(header, { handle, baseUrl: env.BASE_URL, publicDomain: env.PUBLIC_DOMAIN ?? null });
  let count = 0;
  for await (const some of batches(exported)) {
    lease.throwIfAborted();
    const age = Date.now() - Date.parse(header.exportedAt);
    const live = some.filter(({ expiresInMs }) => expiresInMs === null || expiresInMs > age);
    await pipelined(redis, (pipeline) => {
      for (const one of live) {
        const key = one.key.replace(`{${header.handle}}`, `{${handle}}`);
        pipeline.del(key);
        valueTypes[one.type]?.write(pipeline, key, one.value as never, rename);
        if (one.expiresInMs !== null) pipeline.pexpire(key, one.expiresInMs - age);
      }
    });
    count += live.length;
  }
  return count;
}

async function* batches(exported: AsyncIterable<ExportedKey>): AsyncGenerator<ExportedKey[]> {
  let batch: ExportedKey[] = [];
  for await (const one of exported) {
    if (!isCarried(one.key)) continue;
    if (batch.push(one) < KEY_BATCH) continue;
    yield batch;
    batch = [];
  }
  yield batch;
}

/** The part of an address before the handle. */
const paths = "p|v2/handles|v2/public/(?:pages|handles|scheduling|calendars)|apps/(?:public/)?scheduling|mcp";

/** A handle's name, and the addresses of its installation. */
type Origin = Pick<ExportHeader, "handle" | "baseUrl" | "publicDomain">;

/**
 * Replaces the handle's name in stored values: as the member `handle` of an object, and in URLs of the service, absolute ones of the
 * exporting installation, those on the handle's own host there, and those that begin with a path.
 */
function renamer(from: Origin, to: Origin): Rename {
  if (from.handle === to.handle && from.baseUrl === to.baseUrl && from.publicDomain === to.publicDomain)
    return (text) => text;
  const member = JSON.stringify({ handle: from.handle }).slice(1, -1);
  const address = new RegExp(`(${literal(from.baseUrl)}|(?<=["'(\\s=]))/(${paths})/${from.handle}(?![\\w-])`, "g");
  const renameHost = hostRenamer(from, to);
  return (text) =>
    renameHost(text)
      .replaceAll(member, JSON.stringify({ handle: to.handle }).slice(1, -1))
      .replaceAll(address, (_, origin: string, path: string) => `${origin && to.baseUrl}/${path}/${to.handle}`);
}

/** Replaces the handle's own host by its host here, or by the path of its pages; `/` is the page `index`. */
function hostRenamer({ handle, baseUrl, publicDomain }: Origin, to: Origin): Rename {
  if (!publicDomain) return (text) => text;
  const address = new RegExp(
    `https?://${literal(`${handle}.${publicDomain}`)}(?![\\w-]|[.:]\\w)(/v2/|/[\\w%-]|/?)`,
    "g",
  );
  const pageOf = (path: string): string => {
    if (to.publicDomain) return `https://${to.handle}.${to.publicDomain}${path}`;
    return `${to.baseUrl}/p/${to.handle}${path.length > 1 ? path : "/index"}`;
  };
  return (text) => text.replaceAll(address, (_, path: string) => (path === "/v2/" ? baseUrl + path : pageOf(path)));
}

/** A pattern that matches this text alone. */
function literal(text: string): string {
  return text.replaceAll(/[.*+?^${}()|[\]\\]/g, String.raw`\$&`);
}
