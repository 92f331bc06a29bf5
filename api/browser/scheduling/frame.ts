/** Luminance (WCAG 2) above which black text has more contrast than white. */
const BRIGHT_LUMINANCE = 0.179;

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
  style.setProperty("--page-on-accent", luminanceOf(accent) > BRIGHT_LUMINANCE ? "#000" : "#fff");
}

/** Relative luminance of a colour, as the browser computes it (WCAG 2.2, "relative luminance"). */
function luminanceOf(colour: string): number {
  const pixel = document.createElement("canvas").getContext("2d")!;
  pixel.fillStyle = colour;
  pixel.fillRect(0, 0, 1, 1);
  const [red = 0, green = 0, blue = 0] = [...pixel.getImageData(0, 0, 1, 1).data.slice(0, 3)].map((value) => {
    const share = value / 255;
    return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
}
