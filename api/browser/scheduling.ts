import { element } from "./agent/element.ts";
import { applyTheme, postSize } from "./scheduling/frame.ts";
import { startPage } from "./scheduling/page.ts";
import { visit } from "./scheduling/visit.ts";

const main = document.querySelector<HTMLElement>("main");
if (visit.handle && main) startPage(main, element("div.unseen", { "aria-live": "polite" }));
else if (main && parent !== window) {
  applyTheme();
  postSize(main);
}
