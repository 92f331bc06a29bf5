import type { FormField, LeadSection } from "../../../schemas/assistant.ts";
import type { Config } from "./config.ts";
import { sendRequest } from "./reading.ts";

/** The values that the frame's form may send: texts by field. */
export type Entries = Record<string, string>;

/** Maximum length by field type, as in the form itself. */
const MAX_LENGTHS = { text: 200, email: 254, tel: 40, textarea: 2000, select: 80 };
/** The honeypot field. */
const trap = "website";
const native = ["email", "name", "company", "phone", "message", trap];

/**
 * The submission, if it is exactly what the form can send: known fields, texts within their limits, offered choices, and a plausible
 * address. Otherwise undefined, so that no other data leaves the frame.
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
 * The result of a submission; `code` asks for the code that was mailed, `wrong` means an invalid entry, `limited` means too many
 * submissions to this handle.
 */
export type Submission = { kind: Outcome } | { kind: "code"; leadId: string };

type Outcome = "accepted" | "wrong" | "limited" | "failed";

const refusals: Record<number, Outcome> = { 400: "wrong", 429: "limited" };

/** Submits a lead with the context that the visitor has seen. */
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

/** Confirms a lead with the code that was mailed to its address. */
export async function confirmLead(config: Config, leadId: string, code: string): Promise<Outcome> {
  const { ok, status } = await post(`${config.leadUrl}/${encodeURIComponent(leadId)}/verify`, { code });
  return ok ? "accepted" : (refusals[status] ?? "failed");
}

interface Reply {
  ok: boolean;
  status: number;
  body: { lead?: { leadId?: string; status?: string } };
}

async function post(url: string, body: object): Promise<Reply> {
  try {
    const response = await sendRequest(url, { method: "POST", body: JSON.stringify(body) });
    const { ok, status } = response;
    return { ok, status, body: ok ? await response.json() : {} };
  } catch {
    // A missing reply is presented as a refusal: the visitor may try again, and the service merges repeats.
    return { ok: false, status: 0, body: {} };
  }
}
