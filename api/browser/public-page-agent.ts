import { readConfig } from "./agent/config.ts";
import { placeWidget } from "./agent/placement.ts";
import { style } from "./agent/style.ts";

/** Id of the widget's element; a page has one. */
const id = "svc-public-page-agent";

/** The script is in the head and may run before the body is parsed. */
if (document.readyState === "loading") document.addEventListener("DOMContentLoaded", start);
else start();

function start(): void {
  const config = readConfig();
  if (!config || document.getElementById(id)) return;
  const host = document.createElement("div");
  host.id = id;
  host.lang = config.wordsLanguage;
  const root = host.attachShadow({ mode: "open" });
  const sheet = new CSSStyleSheet();
  sheet.replaceSync(style);
  root.adoptedStyleSheets = [sheet];
  placeWidget(config, host, root);
  performance.mark(id);
}
