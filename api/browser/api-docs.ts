/** The API reference: loads the renderer, which is large, and shows /openapi.json instead of the link to it. */

interface Renderer {
  init(address: string, options: object, place: HTMLElement): unknown;
}

// Not bundled: the renderer is a separate file.
const renderer = "/assets/api-reference.js";
const place = document.getElementById("reference");
if (place) {
  new MutationObserver(nameList).observe(place, { childList: true, subtree: true });
  void import(renderer).then(({ init }: Renderer) => init("/openapi.json", { disableTelemetry: true }, place));
}

/** Names the list of operations as navigation once it is there: the renderer leaves it outside of all landmarks. */
function nameList(_changes: MutationRecord[], observer: MutationObserver): void {
  const list = place?.querySelector(".menu-content");
  if (!list) return;
  observer.disconnect();
  list.setAttribute("role", "navigation");
}
