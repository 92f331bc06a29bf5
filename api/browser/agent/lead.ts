import type { FormField, LeadSection } from "../../../schemas/assistant.ts";
import type { Config } from "./config.ts";
import { send } from "./reading.ts";

/** What the frame's form may send: texts by field. */
export type Entries = Record<string, string>;

/** Longest text by type of field, as the form itself limits it. */
const MAX_LENGTHS = { text: 200, email: 254, tel: 40, textarea: 2000, select: 80 };
/** The field that people don't see. */
const trap = "website";
const native = ["email", "name", "company", "phone", "message", trap];

/**
 * What a frame sent, where it is exactly what its form can send: texts of known fields, none too long, choices that were offered,
 * and something like an address. Undefined otherwise: whatever runs in the frame gets nothing else through.
 */
export function readEntries(fields: FormField[], payload: unknown): Entries | undefined {
  if (typeof payload !== "object" || payload === null) return undefined;
  const entries = Object.entries(payload);
  const fits = entries.every(
    ([key, value]) =>
      typeof value === "string" &&
      (key === trap
        ? value.length <= 200
        : isAnswer(
            fields.find((field) => field.key === key),
            value,
          )),
  );
  const read = Object.fromEntries(entries) as Entries;
  return fits && /^\S+@\S+$/.test(read.email ?? "") ? read : undefined;
}

function isAnswer(field: FormField | undefined, value: string): boolean {
  if (!field || value.length > MAX_LENGTHS[field.type]) return false;
  return field.type !== "select" || value === "" || field.options?.includes(value) === true;
}

/**
 * How a submission ended; `code` asks for the one that was sent by mail, `wrong` means that an entry is refused, `limited` that too
 * many came from this network.
 */
export type Submission = { kind: "accepted" | "wrong" | "limited" | "failed" } | { kind: "code"; leadId: string };

const refusals: Record<number, "wrong" | "limited"> = { 400: "wrong", 429: "limited" };

/** Gives a lead to the service with the context that the visitor was told of. */
export async function submitLead(config: Config, section: LeadSection, entries: Entries): Promise<Submission> {
  const filled = Object.entries(entries).filter(([, value]) => value.trim() !== "");
  const isNative = ([key]: [string, string]): boolean => native.includes(key);
  const fields = Object.fromEntries(filled.filter((entry) => !isNative(entry)));
  const lead = {
    ...Object.fromEntries(filled.filter(isNative)),
    fields,
    pageSlug: config.pageSlug,
    leadContext: section.leadContext,
  };
  const answer = await post(config.leadUrl, lead);
  if (!answer.ok) return { kind: refusals[answer.status] ?? "failed" };
  const { leadId = "", status } = answer.body.lead ?? {};
  return status === "UNVERIFIED" ? { kind: "code", leadId } : { kind: "accepted" };
}

/** Confirms a lead by the code that was sent to its address. */
export async function confirmLead(config: Config, leadId: string, code: string): Promise<Submission> {
  const { ok, status } = await post(`${config.leadUrl}/${encodeURIComponent(leadId)}/verify`, { code });
  return { kind: ok ? "accepted" : status === 400 ? "wrong" : "failed" };
}

interface Reply {
  ok: boolean;
  status: number;
  body: { lead?: { leadId?: string; status?: string } };
}

async function post(url: string, body: object): Promise<Reply> {
  try {
    const response = await send(url, { method: "POST", body: JSON.stringify(body) });
    const { ok, status } = response;
    return { ok, status, body: ok ? await response.json() : {} };
  } catch {
    // No answer is told like a refusal: the visitor may try again, and the service folds repeats.
    return { ok: false, status: 0, body: {} };
  }
}
