import type { LeadSection } from "../../../schemas/assistant.ts";
import type { Config } from "./config.ts";
import { element, randomId } from "./element.ts";
import { words } from "./words.ts";

/** Tallest and lowest frame in CSS pixels (docs/reference.md, "Form frame"). */
const tallest = 2000;
const lowest = 80;
/** Ms after which a frame that has said nothing counts as missing. */
const TIMEOUT_MS = 10_000;

/** The frame with the form. It has an origin of its own: nothing goes in but an address, nothing comes out but messages. */
export interface LeadFrame {
  node: HTMLIFrameElement;
  /** Lets the visitor submit once more. */
  reopen(): void;
}

/** Draws the form's frame; `submitted` gets whatever was sent from it, unchecked. */
export function drawLeadFrame(
  section: LeadSection,
  config: Config,
  heard: { submitted(payload: unknown): void; missing(): void },
): LeadFrame {
  const nonce = randomId();
  const node = element("iframe", {
    class: "loading",
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
    node.height = String(Math.min(tallest, Math.max(lowest, Math.ceil(data.height))));
  });
  // The colours are known when the frame stands in its card.
  queueMicrotask(() => node.setAttribute("src", `${formUrl(config, section)}?${colours(node)}#${nonce}`));
  const reopen = (): void => node.contentWindow?.postMessage({ type: "svc-lead-form-open", nonce }, "*");
  return { node, reopen };
}

function formUrl({ chatUrl }: Config, { sectionId }: LeadSection): string {
  return `${chatUrl.replace(/[^/]*$/, "lead-sections")}/${encodeURIComponent(sectionId)}/form`;
}

/** What a document of another origin can't see: the colours around it. */
function colours(node: HTMLElement): URLSearchParams {
  const probe = element("span", { class: "probe", hidden: true });
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
