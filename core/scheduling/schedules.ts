import type { newSchedule, Override, StoredSchedule } from "../../schemas/scheduling.ts";
import type { Input } from "../../schemas/schema.ts";
import { Fail, invalid } from "../platform/errors.ts";
import { withOutcome } from "../platform/outcome.ts";
import type { Runtime } from "../platform/runtime.ts";
import type { Listed, ListInput } from "../store/paging.ts";
import { mustFitCatalog, scheduleRecords, writeToCatalog } from "./catalog.ts";

/** A schedule as its owner sees it. */
type Schedule = StoredSchedule & { handle: string; version: number };

type ScheduleInput = Input<"handle", typeof newSchedule>;
type ScheduleName = Input<"handle" | "scheduleId">;

/** Most schedules of a handle: its catalog is read as a whole. */
const MAX_SCHEDULES = 100;

/** Creates a schedule, or replaces the one with its id; `version_conflict`, times that end before they start. */
export function putSchedule(runtime: Runtime, input: ScheduleInput): Promise<{ schedule: Schedule }> {
  return writeToCatalog(runtime, input, () => putInTurn(runtime, input));
}

async function putInTurn(runtime: Runtime, input: ScheduleInput): Promise<{ schedule: Schedule }> {
  const { handle, expectedVersion, scheduleId = runtime.id("sched_") } = input;
  const overrides = checkedTimes(input);
  const at = runtime.now();
  const stamp = new Date(at).toISOString();
  const { timeZone, weeklyAvailability } = input;
  const made = { scheduleId, timeZone, weeklyAvailability, overrides, createdAt: stamp, updatedAt: stamp };
  const change = async (current: StoredSchedule): Promise<StoredSchedule> => {
    await mustFitCatalog(runtime, handle, made, current);
    return { ...current, ...made, createdAt: current.createdAt };
  };
  const changed = await scheduleRecords.change(runtime, handle, { id: scheduleId, expectedVersion, change });
  if (changed) return { schedule: { ...changed, handle } };
  if (expectedVersion) throw new Fail("version_conflict", { detail: "The schedule does not exist." });
  await mustFitCatalog(runtime, handle, made);
  const full = `A handle has at most ${MAX_SCHEDULES} schedules; delete one first.`;
  const created = { id: scheduleId, value: made, at, max: MAX_SCHEDULES, full };
  // A concurrent request may have created it; then this one replaces it.
  if (!(await scheduleRecords.create(runtime, handle, created))) return putInTurn(runtime, { ...input, scheduleId });
  return withOutcome({ schedule: { ...made, handle, version: 1 } }, "created");
}

/** The handle's schedules, newest first. */
export async function listSchedules(runtime: Runtime, input: ListInput): Promise<Listed<"schedules", Schedule>> {
  const { handle } = input;
  const { records, nextCursor } = await scheduleRecords.list(runtime, input);
  return { schedules: records.map((stored) => ({ ...stored, handle })), nextCursor };
}

/** One schedule; `schedule_not_found`. */
export async function readSchedule(runtime: Runtime, input: ScheduleName): Promise<{ schedule: Schedule }> {
  const { handle, scheduleId } = input;
  return { schedule: { ...(await scheduleRecords.read(runtime, handle, scheduleId)), handle } };
}

/** Removes a schedule; event types that name it then use the handle's oldest one. */
export async function deleteSchedule(runtime: Runtime, { handle, scheduleId }: ScheduleName): Promise<void> {
  if (!(await scheduleRecords.remove(runtime, handle, scheduleId))) throw new Fail("schedule_not_found");
}

/** Checks what the schema can't express, and returns each override as one of their three kinds. */
function checkedTimes(input: ScheduleInput): Override[] {
  for (const [at, row] of input.weeklyAvailability.entries()) checkHours(`/weeklyAvailability/${at}`, row);
  const overrides = input.overrides.map((row, at) => overrideOf(`/overrides/${at}`, row));
  const closed = overrides.filter((row) => "unavailable" in row);
  for (const [at, row] of overrides.entries()) {
    if (!("startTime" in row)) continue;
    const isClosed = closed.some((one) =>
      "date" in one ? one.date === row.date : one.from <= row.date && row.date <= one.to,
    );
    if (isClosed) throw invalid(`/overrides/${at}`, "has hours on a date that another row marks unavailable");
  }
  return overrides;
}

function checkHours(path: string, row: { startTime: string; endTime: string }): void {
  if (row.endTime <= row.startTime)
    throw invalid(
      `${path}/endTime`,
      `must be after startTime${row.endTime === "00:00" ? "; the day ends at 24:00" : ""}`,
    );
}

function overrideOf(path: string, row: ScheduleInput["overrides"][number]): Override {
  const { date, from, to, startTime, endTime, unavailable } = row;
  const isClosed = unavailable === true && startTime === undefined && endTime === undefined;
  if (isClosed && date === undefined && from !== undefined && to !== undefined) return closedPeriod(path, from, to);
  if (date === undefined || from !== undefined || to !== undefined)
    throw invalid(path, "must have either date, or from and to with unavailable: true");
  if (isClosed) return { date, unavailable };
  if (startTime === undefined || endTime === undefined || unavailable === true)
    throw invalid(path, "must have either startTime and endTime, or unavailable: true");
  checkHours(path, { startTime, endTime });
  return { date, startTime, endTime };
}

function closedPeriod(path: string, from: string, to: string): Override {
  if (to < from) throw invalid(`${path}/to`, "must not be before from");
  return { from, to, unavailable: true };
}
