/**
 * The script inside the lead form's frame (docs/reference.md, "Form frame"). The frame has its own opaque origin, and may load no more than
 * its script and style, and store nothing. It posts its entries and its height to the parent, which decides what to do with them.
 */
import { isDark } from "./agent/colour.ts";

/** The widget's nonce, by which the widget recognises its own frame. */
const nonce = location.hash.slice(1);
/** Maximum height of the frame, in CSS pixels. */
const MAX_HEIGHT_PX = 2000;

const colours = new URLSearchParams(location.search);
for (const [name, colour] of colours)
  if (CSS.supports("color", colour)) document.documentElement.style.setProperty(`--page-${name}`, colour);
const surface = colours.get("surface");
if (surface) document.documentElement.style.colorScheme = isDark(surface) ? "dark" : "light";

// Listens on the document: a field may have the name of any property of its form.
document.addEventListener("submit", (event) => {
  event.preventDefault();
  lock(true);
  tell({ type: "svc-lead-form", payload: Object.fromEntries(new FormData(event.target as HTMLFormElement)) });
});

// The parent enables the form again after a failed submission.
addEventListener("message", ({ source, data }) => {
  if (source === parent && data?.nonce === nonce && data.type === "svc-lead-form-open") lock(false);
});

// A browser doesn't lay out a frame that is out of view, and so reports no size: the first size is sent without an observer.
addEventListener("DOMContentLoaded", () => {
  tellSize();
  new ResizeObserver(tellSize).observe(document.body);
});

function tellSize(): void {
  tell({
    type: "svc-lead-form-size",
    height: Math.min(MAX_HEIGHT_PX, Math.ceil(document.body.getBoundingClientRect().height)),
  });
}

function tell(message: object): void {
  // The content security policy allows only the page's own origins as the parent.
  parent.postMessage({ ...message, nonce }, "*");
}

function lock(isLocked: boolean): void {
  const button = document.querySelector<HTMLButtonElement>("button[type=submit]");
  if (button) button.disabled = isLocked;
}
