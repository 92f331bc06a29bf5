import { element } from "./agent/element.ts";
import { applyTheme, postSize } from "./scheduling/frame.ts";
import { startPage } from "./scheduling/page.ts";
import { readVisit } from "./scheduling/visit.ts";

const visit = readVisit();
const main = document.querySelector<HTMLElement>("main");
if (visit && main) startPage(visit, main, element("div.unseen", { "aria-live": "polite" }));
else if (main && parent !== window) {
  applyTheme();
  postSize(main);
}
