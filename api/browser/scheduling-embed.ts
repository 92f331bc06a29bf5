/**
 * Embeds scheduling pages in any page, including elements that are added later:
 *
 *     <div data-svc-scheduling="acme/intro"></div>
 *     <script async src="https://service.example/assets/scheduling-embed.js"></script>
 *
 * `data-theme` is `light` or `dark` (default: that of the page), `data-accent` is a colour, `data-name` and `data-email` fill in the form,
 * and `data-title` names the frame (default: the event's title).
 */

/** Minimum and maximum height of a frame, in CSS pixels. */
const [shortest, tallest] = [120, 4000];
const places = "[data-svc-scheduling]";

const source = document.currentScript as HTMLScriptElement | null;
if (source) start(new URL(source.src).origin);

function start(service: string): void {
  const embedAll = (): void => {
    for (const place of document.querySelectorAll<HTMLElement>(places))
      if (!frameOf(place)) place.replaceChildren(makeFrame(place, service));
  };
  new MutationObserver((changes) => {
    // Another event in the same element.
    for (const { type, target } of changes) if (type === "attributes") (target as HTMLElement).replaceChildren();
    embedAll();
  }).observe(document, {
    childList: true,
    subtree: true,
    attributeFilter: ["data-svc-scheduling"],
  });
  addEventListener("message", (message) => message.origin === service && hear(message));
  embedAll();
}

function frameOf(place: HTMLElement): HTMLIFrameElement | null {
  return place.querySelector("iframe");
}

function makeFrame(place: HTMLElement, service: string): HTMLIFrameElement {
  const { svcScheduling = "", title = "", theme = themeOf(place), accent, name, email } = place.dataset;
  const query = new URLSearchParams({ embed: "1" });
  for (const [key, value] of Object.entries({ theme, accent, name, email })) if (value) query.set(key, value);
  const path = svcScheduling.split("/").map(encodeURIComponent).join("/");
  const frame = document.createElement("iframe");
  frame.title = title;
  frame.src = `${service}/apps/public/scheduling/${path}?${query}`;
  // A frame is transparent only if its colour scheme equals that of its content.
  frame.style.cssText = "display:block;inline-size:100%;border:0;background:none;block-size:720px";
  frame.style.colorScheme = theme || "light dark";
  return frame;
}

/** A page that doesn't declare a dark scheme is light, whatever the system prefers. */
function themeOf(place: HTMLElement): string {
  return getComputedStyle(place).colorScheme.includes("dark") ? "" : "light";
}

/** Applies the height and title that one of our frames sends, while it shows the service. */
function hear({ source, data }: MessageEvent): void {
  const place = [...document.querySelectorAll<HTMLElement>(places)].find(
    (one) => frameOf(one)?.contentWindow === source,
  );
  const frame = place && frameOf(place);
  if (!frame || data?.type !== "svc-scheduling-size") return;
  if (Number.isFinite(data.height))
    frame.style.blockSize = `${Math.min(tallest, Math.max(shortest, Math.ceil(data.height)))}px`;
  if (!place.dataset.title && typeof data.title === "string") frame.title = data.title.slice(0, 200);
}
