import type { LeadSection, leadFormPath } from "../../schemas/assistant.ts";
import type { Infer } from "../../schemas/schema.ts";
import { pageUrl } from "../pages/face.ts";
import { Fail } from "../platform/errors.ts";
import type { Runtime } from "../platform/runtime.ts";
import { keys } from "../store/keys.ts";

/** Lifetime of a section's form in seconds (docs/reference.md, "Form frame"). */
const FORM_TTL_SECONDS = 86_400;

/** The stored part of a section that was shown to a visitor, with its language (BCP 47). */
export type StoredForm = Pick<LeadSection, "fields" | "submitLabel"> & { language?: string };

/** The same with the address of the page that shows it. */
export type LeadForm = StoredForm & { pageUrl: string };

/** Stores the form of a lead section for 24 h, so that its frame has an address. */
export async function storeLeadSection(
  { redis }: Pick<Runtime, "redis">,
  place: {
    handle: string;
    pageSlug: string;
    section: Pick<LeadSection, "sectionId" | "fields" | "submitLabel">;
    /** Language of the form (BCP 47). */
    language: string;
  },
): Promise<void> {
  const { sectionId, fields, submitLabel } = place.section;
  const form: StoredForm = { fields, submitLabel, language: place.language };
  await redis.set(
    keys.leadSection(place.handle, place.pageSlug, sectionId),
    JSON.stringify(form),
    "EX",
    FORM_TTL_SECONDS,
  );
}

/** The form of a section; `not_found` if it was never shown on this page or has expired. */
export async function readLeadForm(runtime: Runtime, input: Infer<typeof leadFormPath>): Promise<LeadForm> {
  const form = await runtime.redis.get(keys.leadSection(input.handle, input.pageSlug, input.sectionId));
  if (form === null) throw new Fail("not_found");
  return { ...(JSON.parse(form) as StoredForm), pageUrl: pageUrl(runtime, input.handle, input.pageSlug) };
}
