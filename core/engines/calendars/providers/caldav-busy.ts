import { Fail } from "../../../platform/errors.ts";
import type { OutboundAnswer } from "../../../platform/outbound.ts";
import type { Runtime } from "../../../platform/runtime.ts";
import { expandApart } from "../expansion.ts";
import { addressIn } from "../recurrence.ts";
import { readMultistatus, type Resource } from "./multistatus.ts";
import type { Account, BusyAnswer, BusyObject, BusyQuestion } from "./provider.ts";
import {
  type CaldavLogin,
  every,
  hrefIn,
  loginOf,
  mustSucceed,
  type Node,
  parsed,
  propfind,
  report,
  send,
  spaces,
  textIn,
  textOf,
  xml,
} from "./webdav.ts";

/** Objects that are fetched in one request, and requests that are under way at a time. */
const batchSize = 250;
const atOnce = 2;
/** Bytes of a calendar that is fetched in one request, when nothing of it is known. */
const largestWhole = 8 * 1_048_576;
/** Parts of one answer about changes after which the server counts as one that never ends. */
const mostParts = 100;
/** Instances of one calendar after which its reading is given up. */
const mostInstances = 50_000;

/** Letters of what a calendar tells of its zone; the histories of real ones have some thousands. */
const longestZone = 65_536;

/** How far a calendar was read: by its sync token (RFC 6578), or else by its ctag; empty where the server has none. */
interface Mark {
  token: string;
  ctag: string;
  /** The calendar's own zone as it tells it; empty where it has none. */
  calendarZone: string;
  /** Addresses by which the handle knew its owners, and those by which the server knows the calendar's. */
  owners: string[];
  addresses: string[];
}

/** An object by its address, with its etag; `data` is the object itself, or empty where it is still to be fetched. */
type Listed = Pick<Resource, "href" | "etag" | "data">;

/** One reading: who asks, and what. */
interface Reading {
  runtime: Runtime;
  login: CaldavLogin;
  question: BusyQuestion;
  owners: string[];
}

/**
 * Busy time of a calendar: only what changed since the last reading where the server can tell that, or its etags do. Objects are
 * fetched as they are stored, because servers expand them wrongly, in batches, and expanded in a thread.
 */
export async function readBusy(runtime: Runtime, account: Account, question: BusyQuestion): Promise<BusyAnswer> {
  const login = loginOf(account);
  const known = await runtime.credentials.ownerAddresses(account.handle);
  const reading: Reading = { runtime, login, question, owners: [login.username, ...known].map(addressIn) };
  const mark = markIn(reading);
  const changes = mark?.token ? await changesSince(reading, mark) : undefined;
  return changes ?? compared(reading, mark);
}

/** How far the calendar was read for the same owners; undefined as well where an older release read it, which knew less. */
function markIn({ question, owners }: Reading): Mark | undefined {
  const mark = JSON.parse(question.known?.mark ?? "{}") as Partial<Mark>;
  return mark.owners?.join(" ") === owners.join(" ") ? (mark as Mark) : undefined;
}

/** What the server says has changed; undefined where it no longer knows the token. */
async function changesSince(reading: Reading, mark: Mark): Promise<BusyAnswer | undefined> {
  const { runtime, login, question } = reading;
  const listed = new Map<string, Listed | undefined>();
  let { token } = mark;
  for (let part = 0; part < mostParts; part++) {
    const body = `<d:sync-collection ${spaces}><d:sync-token>${escaped(token)}</d:sync-token><d:sync-level>1</d:sync-level><d:prop><d:getetag/></d:prop></d:sync-collection>`;
    const answer = await report(runtime, login, question.calendarId, body);
    if (isLost(answer)) return undefined;
    const { resources, syncToken } = await resourcesOf(answer);
    const [own, others] = apart(resources, question.calendarId);
    for (const one of others) listed.set(nameOf(one.href), one.status === 404 || one.status === 410 ? undefined : one);
    token = syncToken || token;
    if (!own.some(({ status }) => status === 507)) return changed(reading, { listed, mark: { ...mark, token } });
  }
  throw new Error("The calendar server tells of changes without an end.");
}

/** Refused, but not for the login: the token is too old, or the report unknown by now. */
function isLost({ status }: OutboundAnswer): boolean {
  return status !== 401 && status >= 400 && status < 500;
}

async function changed(
  reading: Reading,
  { listed, mark }: { listed: Map<string, Listed | undefined>; mark: Mark },
): Promise<BusyAnswer> {
  const there = [...listed.values()].filter((one) => one !== undefined);
  const gone = [...listed].filter(([, one]) => one === undefined).map(([name]) => name);
  const read = await readObjects(reading, { listed: there, mark });
  return { mark: JSON.stringify(mark), isWhole: false, changed: read.found, removed: [...gone, ...read.gone] };
}

/** Compares the etags of what lies in the window with those that are known; everything is new where none are. */
async function compared(reading: Reading, before: Mark | undefined): Promise<BusyAnswer> {
  const { question } = reading;
  // Read before the objects, so that a change in between comes again.
  const mark = await markOf(reading, before);
  const isSame = before !== undefined && mark.calendarZone === before.calendarZone;
  if (isSame && mark.token === "" && mark.ctag !== "" && mark.ctag === before.ctag)
    return { mark: JSON.stringify(mark), isWhole: false, changed: [], removed: [] };
  const tags = (isSame ? await question.known?.tags() : undefined) ?? new Map<string, string>();
  const all = tags.size === 0 ? await listWhole(reading) : await listObjects(reading, "<d:getetag/>");
  const fresh = all.filter(({ href, etag }) => etag === "" || tags.get(nameOf(href)) !== etag);
  const read = await readObjects(reading, { listed: fresh, mark });
  const names = new Set(all.map(({ href }) => nameOf(href)));
  const removed = [...read.gone, ...[...tags.keys()].filter((name) => !names.has(name))];
  return { mark: JSON.stringify(mark), isWhole: !isSame, changed: read.found, removed };
}

/** One of both: some servers look at every object to tell either. */
async function markOf(reading: Reading, before: Mark | undefined): Promise<Mark> {
  const byToken = before?.token === "" ? undefined : await propertiesOf(reading, "<d:sync-token/>");
  const token = byToken ? textIn(byToken, "sync-token") : "";
  const nodes = token && byToken ? byToken : await propertiesOf(reading, "<s:getctag/>");
  const told = textIn(nodes, "calendar-timezone");
  const calendarZone = told.length > longestZone ? "" : told;
  const addresses = before?.addresses ?? (await addressesOf(reading, hrefIn(nodes, "current-user-principal")));
  return { token, ctag: textIn(nodes, "getctag"), calendarZone, owners: reading.owners, addresses };
}

/** Addresses by which others invite the principal (RFC 6638, 2.4.1); none where the server doesn't tell them. */
async function addressesOf({ runtime, login, question }: Reading, principal: string | undefined): Promise<string[]> {
  const { href, origin } = new URL(principal ?? "", question.calendarId);
  if (principal === undefined || origin !== new URL(question.calendarId).origin) return [];
  const body = `<d:propfind ${spaces}><d:prop><c:calendar-user-address-set/></d:prop></d:propfind>`;
  const answer = await send(runtime, login, href, { method: "PROPFIND", headers: xml(0), body });
  if (answer.status !== 207) return [];
  const [found] = every(parsed(answer), "calendar-user-address-set");
  return every(found?.children ?? [], "href").map((address) => addressIn(textOf(address)));
}

async function propertiesOf({ runtime, login, question }: Reading, properties: string): Promise<Node[]> {
  const asked = { depth: 0, properties: `${properties}<c:calendar-timezone/><d:current-user-principal/>` };
  return (await propfind(runtime, login, question.calendarId, asked)).nodes;
}

/**
 * Objects and list in one answer, which spares the server half of its work: most look at every object for either. A calendar that
 * is too large for that is listed, and its objects come in batches.
 */
function listWhole(reading: Reading): Promise<Listed[]> {
  return listObjects(reading, "<d:getetag/><c:calendar-data/>", largestWhole).catch((error: Error) => {
    if (error instanceof Fail) throw error;
    return listObjects(reading, "<d:getetag/>");
  });
}

async function listObjects(
  { runtime, login, question }: Reading,
  properties: string,
  limit?: number,
): Promise<Listed[]> {
  const { calendarId, from, to } = question;
  const range = `start="${compact(from)}" end="${compact(to)}"`;
  const body = `<c:calendar-query ${spaces}><d:prop>${properties}</d:prop><c:filter><c:comp-filter name="VCALENDAR"><c:comp-filter name="VEVENT"><c:time-range ${range}/></c:comp-filter></c:comp-filter></c:filter></c:calendar-query>`;
  const { resources } = await resourcesOf(await report(runtime, login, calendarId, body, limit));
  return apart(resources, calendarId)[1];
}

interface Read {
  found: BusyObject[];
  /** Names of objects that were not there any more. */
  gone: string[];
}

/** Fetches and expands objects, some batches at a time, so that what is held of a calendar at once stays small. */
async function readObjects(reading: Reading, { listed, mark }: { listed: Listed[]; mark: Mark }): Promise<Read> {
  const left = [...listed];
  const all: Read = { found: [], gone: [] };
  let instances = 0;
  const readSome = async (): Promise<void> => {
    while (left.length > 0) {
      const { found, gone } = await readBatch(reading, { listed: left.splice(-batchSize), mark });
      for (const { taken } of found) instances += taken.length;
      if (instances > mostInstances) throw new Error("The calendar has too many instances.");
      all.found.push(...found);
      all.gone.push(...gone);
    }
  };
  await Promise.all(Array.from({ length: atOnce }, readSome));
  return all;
}

async function readBatch(reading: Reading, batch: { listed: Listed[]; mark: Mark }): Promise<Read> {
  const { runtime, question } = reading;
  const { calendarZone, owners, addresses } = batch.mark;
  const here = batch.listed.filter(({ data }) => data !== "");
  const fetched = await fetchObjects(
    reading,
    batch.listed.filter(({ data }) => data === ""),
  );
  const there = [...here, ...fetched.filter(({ data }) => data !== "")];
  const expanded = await expandApart({
    objects: there.map(({ data }) => data),
    ...{ from: question.from, to: question.to, zone: question.zone, calendarZone },
    ...{ owners: [...owners, ...addresses], mostInstances },
  });
  const faults = expanded.flatMap(({ fault }) => fault ?? []);
  if (faults.length > 0) runtime.log.warn({ objects: faults.length, fault: faults[0] }, "calendar.objects_unreadable");
  const found = there.map(({ href, etag }, at): BusyObject => {
    return { objectId: nameOf(href), tag: etag, taken: expanded[at]?.taken ?? [] };
  });
  return { found, gone: fetched.filter(({ data }) => data === "").map(({ href }) => nameOf(href)) };
}

/** Objects by their addresses; one that is gone comes without data. */
async function fetchObjects({ runtime, login, question }: Reading, listed: Listed[]): Promise<Listed[]> {
  if (listed.length === 0) return [];
  const hrefs = listed.map(({ href }) => `<d:href>${escaped(href)}</d:href>`).join("");
  const body = `<c:calendar-multiget ${spaces}><d:prop><d:getetag/><c:calendar-data/></d:prop>${hrefs}</c:calendar-multiget>`;
  return (await resourcesOf(await report(runtime, login, question.calendarId, body))).resources;
}

async function resourcesOf(answer: OutboundAnswer): Promise<{ resources: Resource[]; syncToken: string }> {
  mustSucceed(answer);
  return readMultistatus(answer.body.toString("utf8"));
}

/** What is said of the calendar itself, and of what is in it. */
function apart(resources: Resource[], calendarId: string): [own: Resource[], others: Resource[]] {
  const own = nameOf(new URL(calendarId).pathname);
  const isOwn = ({ href }: Resource): boolean => nameOf(href) === own;
  return [resources.filter(isOwn), resources.filter((one) => !isOwn(one))];
}

/** One name for an address, however it was written: servers are of two minds about escapes, origins and last slashes. */
function nameOf(href: string): string {
  const path = href.replace(/^https?:\/\/[^/]*/i, "").replace(/\/$/, "");
  try {
    return decodeURIComponent(path);
  } catch {
    // Not an escape: a percent sign of its own.
    return path;
  }
}

function escaped(text: string): string {
  return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");
}

function compact(ms: number): string {
  return `${new Date(ms).toISOString().slice(0, 19).replace(/[-:]/g, "")}Z`;
}
