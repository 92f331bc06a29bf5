/** The API reference: loads the renderer, which is large, and shows /openapi.json instead of the plain list. */

interface Renderer {
  init(address: string, options: object, place: HTMLElement): unknown;
}

// Not bundled: the renderer is a separate file.
const renderer = "/assets/api-reference.js";
const place = document.getElementById("reference");
if (place) void import(renderer).then(({ init }: Renderer) => init("/openapi.json", { disableTelemetry: true }, place));
