/*
 * More than 300 lines, because the steps of one reading share its limits: listing, fetching and expanding.
 */
import { LRUCache } from "lru-cache";
import { escapeHtml } from "../../../platform/escaping.ts";
import type { Runtime } from "../../../platform/runtime.ts";
import { isGone } from "../account-api.ts";
import { emptyLargest, MAX_INSTANCES } from "../busy-objects.ts";
import { expandApart, TOO_LONG } from "../expansion.ts";
import { addressIn, TOO_MANY, utcTime } from "../recurrence.ts";
import { CalendarServerError } from "../server-error.ts";
import { type Element, every, hrefIn, textIn } from "../xml-reader.ts";
import type { BusyAnswer, BusyObject, BusyQuestion, ProviderAccount } from "./provider.ts";
import {
  type CaldavLogin,
  type CalendarServer,
  eventQuery,
  MAX_RESOURCES,
  mustSucceed,
  openServer,
  type Report,
  type Resource,
  xml,
} from "./webdav.ts";

/** Objects per request, and concurrent requests. */
const BATCH_SIZE = 250;
const MAX_CONCURRENT_BATCHES = 2;
/** Bytes of one response: of a calendar that is fetched or listed as a whole, and of one batch of its objects. */
const MAX_LISTING_BYTES = 8 * 1_048_576;
const MAX_BATCH_BYTES = 4 * 1_048_576;
/** Bytes of one reading in all. */
const MAX_READING_BYTES = 64 * 1_048_576;
/** Real ms after which a reading is abandoned, and after which it requests nothing more; ms of one response. */
const READING_TIMEOUT_MS = 600_000;
const REQUESTS_TIMEOUT_MS = 120_000;
const ANSWER_TIMEOUT_MS = 60_000;
/** Pages of changes after which the server counts as endless. */
const MAX_PARTS = 100;
/** Addresses of a principal that count as the owner's. */
const MAX_ADDRESSES = 50;
/** Characters of a sync token, and objects that a server may fail to send in one reading. */
const MAX_TOKEN_LENGTH = 65_536;
const MAX_MISSED = 250;

/** The state of a calendar at a reading: its sync token (RFC 6578), else its ctag; empty if the server has neither. */
interface Mark {
  token: string;
  ctag: string;
  /** The calendar's own zone; empty if it has none. */
  calendarZone: string;
  /** The owners' addresses as the handle knows them, and those that the server knows for the calendar's principal. */
  owners: string[];
  addresses: string[];
  /** URLs of changed objects that the server failed to send: they keep their last state, and are fetched again. */
  missed?: string[];
}

/** An object by the canonical name of its URL; `data` is empty if it must still be fetched. */
type ListedObject = Resource & { name: string };

/** A listing: new and changed objects, and the names of removed ones; `isWhole` if all others are removed too. */
interface Changes {
  mark: Mark;
  isWhole: boolean;
  listed: ListedObject[];
  removed: string[];
}

/** One reading: account, query and remaining limits. */
interface Reading {
  runtime: Runtime;
  handle: string;
  server: CalendarServer;
  question: BusyQuestion;
  owners: string[];
  budget: { bytes: number; instances: number };
  /** Real ms. */
  begunAt: number;
}

/**
 * Busy time of a calendar; only what changed since the last reading if the server supports sync tokens, or by comparing etags. Objects are
 * fetched unexpanded, because servers expand them incorrectly, in batches, and expanded in a thread.
 */
export async function readCaldavBusy(
  runtime: Runtime,
  account: ProviderAccount,
  question: BusyQuestion,
): Promise<BusyAnswer> {
  const { handle } = account;
  const { server, login } = await openServer(runtime, account);
  const owners = await ownersOf(runtime, handle, login);
  const budget = { bytes: MAX_READING_BYTES, instances: MAX_INSTANCES };
  const reading: Reading = { runtime, handle, server, question, owners, budget, begunAt: Date.now() };
  const mark = markIn(reading);
  const changes = mark?.token ? await changesSince(reading, mark) : undefined;
  return readChanges(reading, changes ?? (await compareEtags(reading, mark)));
}

/** The addresses of a calendar's owners as the handle knows them. */
export async function ownersOf(
  { credentials }: Pick<Runtime, "credentials">,
  handle: string,
  { username }: Pick<CaldavLogin, "username">,
): Promise<string[]> {
  return [username, ...(await credentials.ownerAddresses(handle))].map(addressIn);
}

/** The last state read for the same owners; undefined if there is none, or if an older release wrote it with less information. */
function markIn({ question, owners }: Reading): Mark | undefined {
  const mark = JSON.parse(question.known?.mark ?? "{}") as Partial<Mark>;
  return mark.owners?.join(" ") === owners.join(" ") ? (mark as Mark) : undefined;
}

/** The server's list of changes; undefined if it no longer accepts the sync token. */
async function changesSince(reading: Reading, mark: Mark): Promise<Changes | undefined> {
  const { question } = reading;
  const missed = (mark.missed ?? []).map((href) => ({ href, status: 200, etag: "", data: "", hasFailed: false }));
  const listed = new Map(membersOf(question, missed).map((one) => [one.name, one]));
  let { token } = mark;
  for (let part = 0; part < MAX_PARTS; part++) {
    const since = `<d:sync-token>${escapeHtml(token)}</d:sync-token><d:sync-level>1</d:sync-level>`;
    const body = xml("d:sync-collection", `${since}<d:prop><d:getetag/></d:prop>`);
    const answer = await ask(reading, { body, headers: { depth: "0" } }, MAX_LISTING_BYTES);
    if (isTokenInvalid(answer)) return undefined;
    mustSucceed(answer);
    const { resources, syncToken } = answer;
    for (const one of membersOf(question, resources)) listed.set(one.name, one);
    if (listed.size > MAX_RESOURCES)
      throw new CalendarServerError("limit", `More than ${MAX_RESOURCES} events have changed.`);
    token = syncToken || token;
    if (token.length > MAX_TOKEN_LENGTH) throw new CalendarServerError("limit", "Its sync token is too long.");
    if (resources.some((one) => one.status === 507 && isCalendar(one, question))) continue;
    const all = [...listed.values()];
    const removed = all.filter(isGone).map(({ name }) => name);
    return { mark: { ...mark, token }, isWhole: false, listed: all.filter((one) => !isGone(one)), removed };
  }
  throw new CalendarServerError("limit", "It tells of changes without an end.");
}

/** Refused, but not for the credentials: the token is too old, which some servers call an error of theirs, or the report is unsupported. */
function isTokenInvalid({ status }: { status: number }): boolean {
  return status !== 401 && status >= 400 && status <= 501;
}

/** Compares the etags in the window with the known ones; without known ones everything is new. */
async function compareEtags(reading: Reading, before: Mark | undefined): Promise<Changes> {
  const { question } = reading;
  // Read before the objects, so that a change in between is read again.
  const mark = await markOf(reading, before);
  const isSame = before !== undefined && mark.calendarZone === before.calendarZone;
  const isComplete = (before?.missed ?? []).length === 0;
  if (isSame && isComplete && mark.token === "" && mark.ctag !== "" && mark.ctag === before.ctag)
    return { mark, isWhole: false, listed: [], removed: [] };
  const tags = (isSame ? await question.known?.tags() : undefined) ?? new Map<string, string>();
  const all = tags.size === 0 ? await listWhole(reading) : await listObjects(reading);
  const listed = all.filter(({ name, etag }) => etag === "" || tags.get(name) !== etag);
  const names = new Set(all.map(({ name }) => name));
  return { mark, isWhole: !isSame, listed, removed: [...tags.keys()].filter((name) => !names.has(name)) };
}

/** The sync token or the ctag: some servers scan every object for either. */
async function markOf(reading: Reading, before: Mark | undefined): Promise<Mark> {
  const byToken = before?.token === "" ? undefined : await propertiesOf(reading, "<d:sync-token/>");
  const token = byToken ? textIn(byToken, "sync-token") : "";
  const found = token && byToken ? byToken : await propertiesOf(reading, "<s:getctag/>");
  const addresses = before?.addresses ?? (await addressesOf(reading, hrefIn(found, "current-user-principal")));
  const [ctag, calendarZone] = [textIn(found, "getctag"), textIn(found, "calendar-timezone")];
  return { token, ctag, calendarZone, owners: reading.owners, addresses };
}

/** The principal's calendar user addresses (RFC 6638, section 2.4.1); empty if the server has none. */
async function addressesOf({ server, question }: Reading, principal: string | undefined): Promise<string[]> {
  const { href, origin } = new URL(principal ?? "", question.calendarId);
  if (principal === undefined || origin !== new URL(question.calendarId).origin) return [];
  const { found } = await server.askProperties({ address: href, properties: "<c:calendar-user-address-set/>" });
  const [set] = found ? every(found, "calendar-user-address-set") : [];
  const addresses = set ? every(set, "href").map(({ text }) => addressIn(text)) : [];
  return addresses.slice(0, MAX_ADDRESSES);
}

async function propertiesOf({ server, question }: Reading, properties: string): Promise<Element> {
  const wanted = `${properties}<c:calendar-timezone/><d:current-user-principal/>`;
  return (await server.propfind({ address: question.calendarId, properties: wanted })).found;
}

/** Calendars whose server took too long for a fetch as a whole. */
const slowWholes = new LRUCache<string, true>({ max: 1000, ttl: 3_600_000 });

/**
 * Lists and fetches objects in one response, which halves the server's work, since most servers scan every object for either. A calendar
 * that is too large is listed, and its objects come in batches; so is, from the next reading on, one whose server is too slow.
 */
async function listWhole(reading: Reading): Promise<ListedObject[]> {
  const { calendarId } = reading.question;
  if (slowWholes.has(calendarId)) return listObjects(reading);
  try {
    return await listObjects(reading, "<c:calendar-data/>");
  } catch (error) {
    const reason = error instanceof CalendarServerError ? error.reason : undefined;
    if (reason === "timeout") slowWholes.set(calendarId, true);
    if (reason === undefined || reason === "timeout") throw error;
    return listObjects(reading);
  }
}

/** The objects that have events in the window, with their etags and further properties. */
async function listObjects(reading: Reading, properties = ""): Promise<ListedObject[]> {
  const { from, to } = reading.question;
  const range = `<c:time-range start="${utcTime(from)}" end="${utcTime(to)}"/>`;
  const answer = await ask(reading, eventQuery(`<d:getetag/>${properties}`, range), MAX_LISTING_BYTES);
  mustSucceed(answer);
  // Objects that a truncated listing leaves out would count as removed.
  if (answer.resources.some((one) => one.status >= 400 && isCalendar(one, reading.question)))
    throw new CalendarServerError("limit", "It lists only a part of its events.");
  return membersOf(reading.question, answer.resources);
}

/** Fetches and expands the listed objects in a few concurrent batches, to bound the memory. */
async function readChanges(reading: Reading, { mark, isWhole, listed, removed }: Changes): Promise<BusyAnswer> {
  const answer: BusyAnswer = { mark: null, isWhole, changed: [], removed };
  const left = [...listed];
  const missed: string[] = [];
  const readSome = async (): Promise<void> => {
    while (left.length > 0) {
      const batch = left.splice(-BATCH_SIZE);
      const wanted = batch.filter(isBare);
      const fetched = (await fetchObjects(reading, wanted)).filter((one) => !(isBare(one) && one.hasFailed));
      const there = [...batch, ...fetched].filter((one) => !isBare(one));
      await expandAll(reading, { objects: there, mark, into: answer.changed });
      answer.removed.push(...fetched.filter(isBare).map(({ name }) => name));
      missed.push(...missing(wanted, fetched));
    }
  };
  await Promise.all(Array.from({ length: MAX_CONCURRENT_BATCHES }, readSome));
  if (missed.length > MAX_MISSED) throw new CalendarServerError("unavailable", "It does not send its events.");
  return { ...answer, mark: JSON.stringify({ ...mark, missed } satisfies Mark) };
}

const isBare = ({ data }: ListedObject): boolean => data === "";

/** URLs of the wanted objects that are missing in the response. */
function missing(wanted: ListedObject[], fetched: ListedObject[]): string[] {
  const told = new Set(fetched.map(({ name }) => name));
  return wanted.filter(({ name }) => !told.has(name)).map(({ href }) => href);
}

async function expandAll(
  reading: Reading,
  { objects, mark, into }: { objects: ListedObject[]; mark: Mark; into: BusyObject[] },
): Promise<void> {
  const { question, budget, runtime, handle, begunAt } = reading;
  const { from, to, zone } = question;
  const owners = [...mark.owners, ...mark.addresses];
  const expansion = { from, to, zone, calendarZone: mark.calendarZone, owners, maxInstances: MAX_INSTANCES };
  const texts = objects.map(({ data }) => data);
  const faults: string[] = [];
  const left = [...objects];
  for await (const { busy, fault } of expandApart(texts, expansion, handle)) {
    if (Date.now() - begunAt > READING_TIMEOUT_MS) throw new CalendarServerError("limit", TOO_LONG);
    const { name, etag } = left.shift() as ListedObject;
    into.push({ objectId: name, tag: etag, busy });
    budget.instances -= busy.length;
    const emptied = budget.instances < 0 ? emptyLargest(into) : 0;
    budget.instances += emptied;
    if (emptied > 0) faults.push(TOO_MANY);
    if (fault) faults.push(fault);
  }
  if (faults.length > 0) runtime.log.warn({ objects: faults.length, fault: faults[0] }, "calendar.objects_unreadable");
}

/** The data of an object that is too large: not a calendar, so that it counts as unreadable. */
const OVERSIZED = "oversized";

/** Fetches objects by URL; a deleted one has no data. A batch that is too large is halved. */
async function fetchObjects(reading: Reading, listed: ListedObject[]): Promise<ListedObject[]> {
  if (listed.length === 0) return [];
  try {
    return await fetchTogether(reading, listed);
  } catch (error) {
    const isTooLarge = error instanceof CalendarServerError && error.reason === "limit";
    if (!isTooLarge || reading.budget.bytes <= 0) throw error;
    if (listed.length === 1) return listed.map((one) => ({ ...one, data: OVERSIZED }));
    const middle = Math.ceil(listed.length / 2);
    const first = await fetchObjects(reading, listed.slice(0, middle));
    return [...first, ...(await fetchObjects(reading, listed.slice(middle)))];
  }
}

async function fetchTogether(reading: Reading, listed: ListedObject[]): Promise<ListedObject[]> {
  const hrefs = listed.map(({ href }) => `<d:href>${escapeHtml(href)}</d:href>`).join("");
  const body = xml("c:calendar-multiget", `<d:prop><d:getetag/><c:calendar-data/></d:prop>${hrefs}`);
  const answer = await ask(reading, { body }, MAX_BATCH_BYTES);
  mustSucceed(answer);
  // One resource per URL, with some room for a server that repeats itself.
  return membersOf(reading.question, answer.resources.slice(0, 2 * listed.length));
}

/** Sends a report within the remaining limits of the reading. */
function ask({ server, question, budget, begunAt }: Reading, report: Report, maxBytes: number) {
  if (budget.bytes <= 0)
    throw new CalendarServerError("limit", `The calendar has more than ${MAX_READING_BYTES} bytes.`);
  const timeoutMs = Math.min(ANSWER_TIMEOUT_MS, begunAt + REQUESTS_TIMEOUT_MS - Date.now());
  if (timeoutMs <= 0) throw new CalendarServerError("timeout");
  return server.report({ address: question.calendarId, ...report, maxBytes, timeoutMs }, budget);
}

/** The objects among the resources of a calendar. */
function membersOf(question: BusyQuestion, resources: Resource[]): ListedObject[] {
  const members = resources.filter((one) => !isCalendar(one, question));
  return members.map((one) => ({ ...one, name: canonicalUrl(one.href) }));
}

function isCalendar({ href }: Resource, { calendarId }: BusyQuestion): boolean {
  return canonicalUrl(href) === canonicalUrl(calendarId);
}

/** The canonical name of a URL: servers differ in escapes, origins and trailing slashes. */
function canonicalUrl(href: string): string {
  const path = href.replace(/^https?:\/\/[^/]*/i, "").replace(/\/$/, "");
  try {
    return decodeURIComponent(path);
  } catch {
    // A literal percent sign.
    return path;
  }
}
