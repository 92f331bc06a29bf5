/**
 * The script inside the lead form's frame (docs/reference.md, "Form frame"). The frame has an origin of its own, may load, store and send nothing, and
 * tells its parent what was entered and how tall it is. The parent decides what becomes of that.
 */

/** The widget's nonce: it knows its own frame by it. */
const nonce = location.hash.slice(1);
/** Tallest frame in CSS pixels. */
const tallest = 2000;

const colours = new URLSearchParams(location.search);
for (const [name, colour] of colours)
  if (CSS.supports("color", colour)) document.documentElement.style.setProperty(`--${name}`, colour);
document.documentElement.style.colorScheme = isDark(colours.get("surface"))
  ? "dark"
  : colours.has("surface")
    ? "light"
    : "light dark";

// Listens on the document: a field may have the name of any property of its form.
document.addEventListener("submit", (event) => {
  event.preventDefault();
  lock(true);
  tell({ type: "svc-lead-form", payload: Object.fromEntries(new FormData(event.target as HTMLFormElement)) });
});

// The parent opens the form again where it could not be sent.
addEventListener("message", ({ source, data }) => {
  if (source === parent && data?.nonce === nonce && data.type === "svc-lead-form-open") lock(false);
});

// A browser draws no frame that is out of sight, and so observes none: the first size is told without it.
addEventListener("DOMContentLoaded", () => {
  tellSize();
  new ResizeObserver(tellSize).observe(document.body);
});

function tellSize(): void {
  tell({
    type: "svc-lead-form-size",
    height: Math.min(tallest, Math.ceil(document.body.getBoundingClientRect().height)),
  });
}

function tell(message: object): void {
  // Its content security policy lets nobody but the page's own origins be the parent.
  parent.postMessage({ ...message, nonce }, "*");
}

function lock(isLocked: boolean): void {
  const button = document.querySelector<HTMLButtonElement>("button[type=submit]");
  if (button) button.disabled = isLocked;
}

/** True for `rgb(…)` and `color(srgb …)` nearer to black than to white. */
function isDark(colour: string | null): boolean {
  const parts =
    colour
      ?.match(/[\d.]+/g)
      ?.slice(0, 3)
      .map(Number) ?? [];
  const full = colour?.startsWith("color(") ? 1 : 255;
  return parts.length === 3 && parts.reduce((sum, part) => sum + part, 0) < 1.5 * full;
}
