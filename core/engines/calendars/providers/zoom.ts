import { clip } from "../../../platform/characters.ts";
import { sha256 } from "../../../platform/digest.ts";
import type { Env } from "../../../platform/env.ts";
import type { Runtime } from "../../../platform/runtime.ts";
import { secretFor, tokensIn } from "../access-tokens.ts";
import { AccountApi, getWithGrant } from "../account-api.ts";
import { meetingLink } from "../event-states.ts";
import { refreshGrant, revokeGrant } from "../oauth.ts";
import type { CalendarEvent, OAuthSettings, Provider } from "./provider.ts";

/** Most characters of an agenda and of a topic. */
const MAX_AGENDA_LENGTH = 2000;
const MAX_TOPIC_LENGTH = 200;

/** Zoom (API v2): meetings of the connected user. Its refresh tokens are valid once. */
export const zoom: Provider = {
  oauth: settingsFrom,
  async connect(runtime, grant, settings) {
    const user = getWithGrant<{ email?: string; id: string }>(runtime, grant, `${settings.api}/users/me`);
    const { email, id } = await user;
    return { account: email ?? id, secret: secretFor(grant) };
  },
  async disconnect(runtime, { secret }) {
    const settings = settingsFrom(runtime.env);
    await revokeGrant(runtime, settings, await revocable(runtime, settings, secret));
  },
  meetings: {
    kind: "zoom",
    async put(runtime, account, { event, earlier }) {
      const calls = new AccountApi({ runtime, account, settings: settingsFrom(runtime.env) });
      const { id, join_url } =
        (await changeMeeting(calls, earlier?.meetingId, event)) ??
        (await changeMeeting(calls, await findMeeting(calls, event), event)) ??
        (await calls.call<ZoomMeeting>({ method: "POST", path: "/users/me/meetings", json: bodyOf(event) }));
      const url = meetingLink(join_url);
      if (url === null) throw new Error("Zoom named no link.");
      return { meetingId: String(id), url };
    },
    async remove(runtime, account, { meetingId }) {
      const path = `/meetings/${meetingId}?schedule_for_reminder=false&cancel_meeting_reminder=false`;
      await new AccountApi({ runtime, account, settings: settingsFrom(runtime.env) }).find({ method: "DELETE", path });
    },
  },
};

function settingsFrom(env: Env): OAuthSettings {
  return {
    clientId: env.ZOOM_CLIENT_ID ?? "",
    clientSecret: env.ZOOM_CLIENT_SECRET ?? "",
    authorize: `${env.ZOOM_OAUTH_BASE}/oauth/authorize`,
    token: `${env.ZOOM_OAUTH_BASE}/oauth/token`,
    revoke: `${env.ZOOM_OAUTH_BASE}/oauth/revoke`,
    api: `${env.ZOOM_API_BASE}/v2`,
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
  return (await refreshGrant(runtime, settings, refreshToken)).tokens.accessToken;
}

interface ZoomMeeting {
  id: number;
  agenda?: string;
  join_url: string;
}

/** Brings a meeting to its booking's state, unless it has a later one; undefined if there is none, or it is gone. */
async function changeMeeting(
  calls: AccountApi,
  meetingId: string | number | undefined,
  event: CalendarEvent,
): Promise<ZoomMeeting | undefined> {
  if (meetingId === undefined) return undefined;
  const path = `/meetings/${meetingId}`;
  const current = await calls.find<ZoomMeeting>({ path });
  if (current === undefined || sequenceIn(current.agenda) > event.sequence) return current;
  const changed = await calls.find({ method: "PATCH", path, json: bodyOf(event) });
  return changed === undefined ? undefined : current;
}

/** Zoom has no idempotency: the reference in the agenda finds a meeting that was created before a crash. */
async function findMeeting(calls: AccountApi, event: CalendarEvent): Promise<number | undefined> {
  const first = "/users/me/meetings?type=scheduled&page_size=300";
  const read = ({ meetings, next_page_token }: { meetings?: ZoomMeeting[]; next_page_token?: string }) => {
    return { items: meetings, next: next_page_token && `${first}&${new URLSearchParams({ next_page_token })}` };
  };
  const listing = await calls.list(first, read);
  return listing?.items.find(({ agenda = "" }) => agenda.startsWith(referenceOf(event)))?.id;
}

function bodyOf(event: CalendarEvent): object {
  const { title, start, end, timeZone, description, sequence } = event;
  return {
    topic: clip(title, MAX_TOPIC_LENGTH),
    type: 2,
    start_time: `${start.slice(0, 19)}Z`,
    duration: Math.ceil((Date.parse(end) - Date.parse(start)) / 60_000),
    timezone: timeZone,
    agenda: clip(`${referenceOf(event)}${sequence}\n\n${description}`, MAX_AGENDA_LENGTH),
  };
}

/** The start of the agenda, since listings truncate agendas. It must not be secret: the booking's own uid would allow cancelling. */
function referenceOf({ uid }: CalendarEvent): string {
  return `Booking ${sha256(uid).toString("hex").slice(0, 16)}-`;
}

function sequenceIn(agenda = ""): number {
  return Number(/^Booking [0-9a-f]{16}-(\d+)/.exec(agenda)?.[1] ?? -1);
}
