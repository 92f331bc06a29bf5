import type { LeadSection } from "../../../schemas/assistant.ts";
import type { Config } from "./config.ts";
import { element, randomId } from "./element.ts";
import { words } from "./words.ts";

/** Maximum and minimum height of the frame, in CSS pixels (docs/reference.md, "Form frame"). */
const MAX_HEIGHT_PX = 2000;
const MIN_HEIGHT_PX = 80;
/** Ms after which a frame without a message counts as failed. */
const TIMEOUT_MS = 10_000;

/** The frame with the form. It has its own opaque origin: its URL and the message that reopens it are the input, messages the only output. */
export interface LeadFrame {
  node: HTMLIFrameElement;
  /** Enables the submit button again. */
  reopen(): void;
}

/** Creates the form's frame; `submitted` gets each submitted value, unchecked. */
export function drawLeadFrame(
  section: LeadSection,
  config: Config,
  heard: { submitted(payload: unknown): void; missing(): void },
): LeadFrame {
  const nonce = randomId();
  const node = element("iframe.loading", {
    part: "lead-frame",
    title: words.form,
    sandbox: "allow-forms allow-scripts",
    height: "320",
  });
  const timer = setTimeout(heard.missing, TIMEOUT_MS);
  addEventListener("message", function listen({ source, data }: MessageEvent) {
    if (!source || source !== node.contentWindow || data?.nonce !== nonce) return;
    if (data.type === "svc-lead-form") heard.submitted(data.payload);
    if (data.type !== "svc-lead-form-size" || !Number.isFinite(data.height)) return;
    clearTimeout(timer);
    node.className = "";
    node.height = String(Math.min(MAX_HEIGHT_PX, Math.max(MIN_HEIGHT_PX, Math.ceil(data.height))));
  });
  // The colours are computed once the frame is in its card.
  queueMicrotask(() => node.setAttribute("src", `${formUrl(config, section)}?${colours(node)}#${nonce}`));
  const reopen = (): void => node.contentWindow?.postMessage({ type: "svc-lead-form-open", nonce }, "*");
  return { node, reopen };
}

function formUrl({ chatUrl }: Config, { sectionId }: LeadSection): string {
  return `${chatUrl.replace(/[^/]*$/, "lead-sections")}/${encodeURIComponent(sectionId)}/form`;
}

/** The surrounding colours, which a document of another origin can't read. */
function colours(node: HTMLElement): URLSearchParams {
  const probe = element("span.probe", { hidden: true });
  node.after(probe);
  const {
    backgroundColor: accent,
    color,
    borderTopColor: line,
    outlineColor: surface,
    textDecorationColor: text,
  } = getComputedStyle(probe);
  const found = new URLSearchParams({ accent, "on-accent": color, line, surface, text });
  probe.remove();
  return found;
}
