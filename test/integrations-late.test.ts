import t, { type Test as TapTest } from "tap";
import { type CalendarEvent, ownUid, type ProviderAccount } from "../core/engines/calendars/providers/provider.ts";
import { providers } from "../core/engines/calendars/providers/table.ts";
import { credentialRecords } from "../core/scheduling/credentials.ts";
import { startGoogle } from "../fixtures/providers/google.ts";
import { startMicrosoft } from "../fixtures/providers/microsoft.ts";
import { startZoom } from "../fixtures/providers/zoom.ts";
import { type Desk, openDesk } from "../fixtures/scheduling/desk.ts";

/** A booking's state after so many moves: each an hour later. */
function eventAt(desk: Desk, sequence: number): CalendarEvent {
  const hour = 10 + sequence;
  return {
    bookingUid: "booking",
    uid: ownUid(desk.service.runtime.env, "booking"),
    sequence,
    title: "Talk",
    description: "",
    start: `2026-10-06T${hour}:00:00.000Z`,
    end: `2026-10-06T${hour}:30:00.000Z`,
    timeZone: "UTC",
    location: null,
    meeting: null,
    updatedAt: "2026-10-05T06:00:00.000Z",
  };
}

async function open(t: TapTest, providerKey: string, env: Record<string, string>): Promise<[Desk, ProviderAccount]> {
  const desk = await openDesk(t, { providerKey, env, workers: [] });
  const { runtime } = desk.service;
  return [desk, { handle: "acme", ...(await credentialRecords.read(runtime, "acme", desk.credentialId)) }];
}

t.test("google: an older state that comes late leaves the newer one", async (t) => {
  const google = await startGoogle("owner@gmail.test");
  t.teardown(() => google.close());
  const [desk, account] = await open(t, "google", google.env);
  const put = async (sequence: number, earlier = {}) =>
    providers.google?.calendars?.put(desk.service.runtime, account, {
      calendarId: "owner@gmail.test",
      event: eventAt(desk, sequence),
      ...earlier,
    });
  const first = await put(0);
  await put(2, { earlier: first });
  await put(1, { earlier: first });
  await put(1);
  const [event] = google.calendars.get("owner@gmail.test")?.events.values() ?? [];
  t.match(event?.start, { dateTime: "2026-10-06T12:00:00.000Z" });
});

t.test("microsoft: an older state that comes late leaves the newer one", async (t) => {
  const microsoft = await startMicrosoft();
  t.teardown(() => microsoft.close());
  const [desk, account] = await open(t, "microsoft", microsoft.env);
  const put = async (sequence: number, earlier = {}) =>
    providers.microsoft?.calendars?.put(desk.service.runtime, account, {
      calendarId: "AAMkDefault=",
      event: eventAt(desk, sequence),
      ...earlier,
    });
  const first = await put(0);
  await put(2, { earlier: first });
  await put(1, { earlier: first });
  await put(1);
  const [event] = microsoft.calendars[0]?.events.values() ?? [];
  t.match(event?.start, { dateTime: "2026-10-06T12:00:00" });
  t.equal(microsoft.calendars[0]?.events.size, 1);
});

t.test("zoom: an older state that comes late leaves the newer one", async (t) => {
  const zoom = await startZoom();
  t.teardown(() => zoom.close());
  const [desk, account] = await open(t, "zoom", zoom.env);
  const put = async (sequence: number, earlier = {}) =>
    providers.zoom?.meetings?.put(desk.service.runtime, account, { event: eventAt(desk, sequence), ...earlier });
  const first = await put(0);
  await put(2, { earlier: first });
  await put(1, { earlier: first });
  await put(1);
  const [meeting] = zoom.meetings.values();
  t.equal(meeting?.start_time, "2026-10-06T12:00:00Z");
  t.equal(zoom.meetings.size, 1);
});
