import { isDark } from "../agent/colour.ts";

/** Posts the height and the title to the embedding page; neither contains personal data. */
export function postSize(content: HTMLElement, title = document.title): void {
  if (parent === window) return;
  document.body.classList.add("embedded");
  let sentHeight = 0;
  new ResizeObserver(() => {
    const height = Math.ceil(content.getBoundingClientRect().height);
    if (height === sentHeight) return;
    sentHeight = height;
    parent.postMessage({ type: "svc-scheduling-size", height, title }, "*");
  }).observe(content);
}

/** Applies the scheme and the accent colour that the embedding page asks for. */
export function applyTheme(): void {
  const given = new URLSearchParams(location.search);
  const { style } = document.documentElement;
  const [theme, accent] = [given.get("theme") ?? "", given.get("accent") ?? ""];
  if (theme === "light" || theme === "dark") style.colorScheme = theme;
  if (!CSS.supports("color", accent)) return;
  style.setProperty("--page-accent", accent);
  style.setProperty("--page-on-accent", isDark(accent) ? "#fff" : "#000");
}
