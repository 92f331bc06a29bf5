/**
 * Puts a scheduling page into any other page:
 *
 *     <div data-svc-scheduling="acme/intro"></div>
 *     <script async src="https://service.example/assets/scheduling-embed.js"></script>
 */

/** Least and most CSS pixels that a frame is given. */
const [shortest, tallest] = [320, 4000];

const source = document.currentScript as HTMLScriptElement | null;
const service = source && new URL(source.src).origin;
if (service) {
  const embedAll = (): void => {
    for (const place of document.querySelectorAll<HTMLElement>("[data-svc-scheduling]:empty")) embed(place, service);
  };
  embedAll();
  if (document.readyState === "loading") document.addEventListener("DOMContentLoaded", embedAll);
}

function embed(place: HTMLElement, service: string): void {
  const path = (place.dataset.svcScheduling ?? "").split("/").map(encodeURIComponent).join("/");
  const frame = document.createElement("iframe");
  frame.title = place.dataset.title ?? "Booking";
  frame.src = `${service}/apps/public/scheduling/${path}?embed=1`;
  frame.style.cssText = "display:block;inline-size:100%;border:0;color-scheme:light dark";
  frame.style.height = "720px";
  addEventListener("message", ({ source, origin, data }) => {
    // Only this very frame, and only while it shows the service.
    if (source !== frame.contentWindow || origin !== service || data?.type !== "svc-scheduling-size") return;
    if (Number.isFinite(data.height))
      frame.style.height = `${Math.min(tallest, Math.max(shortest, Math.ceil(data.height)))}px`;
  });
  place.append(frame);
}
