import { sha256 } from "../../../platform/digest.ts";
import type { Env } from "../../../platform/env.ts";
import type { Runtime } from "../../../platform/runtime.ts";
import { secretFor, tokensIn } from "../access-tokens.ts";
import { apiCaller, callWithToken, responseJson } from "../authorised-calls.ts";
import { refreshGrant, revokeGrant } from "../oauth.ts";
import type { CalendarEvent, OAuthSettings, Provider, ProviderAccount, WrittenMeeting } from "./provider.ts";

/** Pages of scheduled meetings to search for one that was created before. */
const MAX_PAGES = 20;
/** Most characters of an agenda and of a topic. */
const MAX_AGENDA_LENGTH = 2000;
const MAX_TOPIC_LENGTH = 200;

/** Zoom (API v2): meetings of the connected user. Its refresh tokens are valid once. */
export const zoom: Provider = {
  oauth: settingsFrom,
  async connect(runtime, grant) {
    const answer = await callWithToken(runtime, grant.accessToken, { url: address(runtime.env, "/users/me") });
    const { email, id } = responseJson<{ email?: string; id: string }>(answer);
    return { account: email ?? id, secret: secretFor(grant) };
  },
  async disconnect(runtime, { secret }) {
    const settings = settingsFrom(runtime.env);
    if (settings) await revokeGrant(runtime, settings, await revocable(runtime, settings, secret));
  },
  meetings: {
    kind: "zoom",
    async put(runtime, account, { event, earlier }) {
      const known = earlier ?? (await findMeeting(runtime, account, event));
      const changed = known && (await changeMeeting(runtime, account, { event, known }));
      return changed ?? makeMeeting(runtime, account, event);
    },
    async remove(runtime, account, { meetingId }) {
      const path = `/meetings/${meetingId}?schedule_for_reminder=false&cancel_meeting_reminder=false`;
      const answer = await askZoom(runtime, account, { method: "DELETE", path });
      if (answer.status !== 404) responseJson(answer);
    },
  },
};

function settingsFrom(env: Env): OAuthSettings | undefined {
  const { ZOOM_CLIENT_ID: clientId, ZOOM_CLIENT_SECRET: clientSecret } = env;
  if (!clientId || !clientSecret) return undefined;
  return {
    clientId,
    clientSecret,
    authorize: `${env.ZOOM_OAUTH_BASE}/oauth/authorize`,
    token: `${env.ZOOM_OAUTH_BASE}/oauth/token`,
    revoke: `${env.ZOOM_OAUTH_BASE}/oauth/revoke`,
    // The scopes are set where the client is registered.
    scope: "",
    login: "basic",
    parameters: {},
  };
}

/** Only access tokens can be revoked, and only while they are valid. */
async function revocable(runtime: Runtime, settings: OAuthSettings, secret: string | null): Promise<string> {
  const { accessToken, refreshToken, staleAt } = tokensIn(secret);
  if (refreshToken === null || staleAt === null || Date.now() < staleAt) return accessToken;
  return (await refreshGrant(runtime, settings, refreshToken)).accessToken;
}

interface ZoomMeeting {
  id: number;
  agenda?: string;
  join_url: string;
}

async function makeMeeting(runtime: Runtime, account: ProviderAccount, event: CalendarEvent): Promise<WrittenMeeting> {
  const answer = await askZoom(runtime, account, { method: "POST", path: "/users/me/meetings", json: bodyOf(event) });
  return writtenOf(account, responseJson<ZoomMeeting>(answer));
}

/** Brings a meeting to its booking's state, unless it has a later one; undefined if it is gone. */
async function changeMeeting(
  runtime: Runtime,
  account: ProviderAccount,
  { event, known }: { event: CalendarEvent; known: WrittenMeeting },
): Promise<WrittenMeeting | undefined> {
  const path = `/meetings/${known.meetingId}`;
  const read = await askZoom(runtime, account, { path });
  if (read.status === 404) return undefined;
  const current = responseJson<ZoomMeeting>(read);
  if (sequenceIn(current.agenda) > event.sequence) return writtenOf(account, current);
  const answer = await askZoom(runtime, account, { method: "PATCH", path, json: bodyOf(event) });
  if (answer.status === 404) return undefined;
  if (answer.status !== 204) responseJson(answer);
  return writtenOf(account, current);
}

/** Zoom has no idempotency: the reference in the agenda finds a meeting that was created before a crash. */
async function findMeeting(
  runtime: Runtime,
  account: ProviderAccount,
  event: CalendarEvent,
): Promise<WrittenMeeting | undefined> {
  let next = "";
  for (let pages = 0; pages < MAX_PAGES; pages++) {
    const query = new URLSearchParams({
      type: "scheduled",
      page_size: "300",
      ...(next ? { next_page_token: next } : {}),
    });
    const answer = await askZoom(runtime, account, { path: `/users/me/meetings?${query}` });
    const page = responseJson<{ meetings?: ZoomMeeting[]; next_page_token?: string }>(answer);
    const found = page.meetings?.find(({ agenda = "" }) => agenda.startsWith(referenceOf(event)));
    if (found) return writtenOf(account, found);
    if (!page.next_page_token) return undefined;
    next = page.next_page_token;
  }
  return undefined;
}

function bodyOf(event: CalendarEvent): object {
  const { title, start, end, timeZone, description, sequence } = event;
  return {
    topic: title.slice(0, MAX_TOPIC_LENGTH),
    type: 2,
    start_time: `${start.slice(0, 19)}Z`,
    duration: Math.ceil((Date.parse(end) - Date.parse(start)) / 60_000),
    timezone: timeZone,
    agenda: `${referenceOf(event)}${sequence}\n\n${description}`.slice(0, MAX_AGENDA_LENGTH),
  };
}

/** The start of the agenda, since listings truncate agendas. It must not be secret: the booking's own uid would allow cancelling. */
function referenceOf({ uid }: CalendarEvent): string {
  return `Booking ${sha256(uid).toString("hex").slice(0, 16)}-`;
}

function sequenceIn(agenda = ""): number {
  return Number(/^Booking [0-9a-f]{16}-(\d+)/.exec(agenda)?.[1] ?? -1);
}

function writtenOf({ credential }: ProviderAccount, { id, join_url: url }: ZoomMeeting): WrittenMeeting {
  return { credentialId: credential.credentialId, meetingId: String(id), url };
}

const askZoom = apiCaller({ settings: settingsFrom, url: address });

function address({ ZOOM_API_BASE }: Env, path: string): string {
  return `${ZOOM_API_BASE}/v2${path}`;
}
