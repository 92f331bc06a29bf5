import { element } from "./agent/element.ts";
import { takeLook, tellSize } from "./scheduling/frame.ts";
import { openPage } from "./scheduling/page.ts";
import { readVisit } from "./scheduling/visit.ts";

const visit = readVisit();
const main = document.querySelector<HTMLElement>("main");
if (visit && main) openPage(visit, main, element("div", { class: "unseen", "aria-live": "polite" }));
else if (main && parent !== window) {
  takeLook();
  tellSize(main);
}
