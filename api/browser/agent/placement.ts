import type { Config } from "./config.ts";
import { element, widgetIcon } from "./element.ts";
import { drawPanel, type Panel } from "./panel.ts";
import { words } from "./words.ts";

/** If a page has mounts, the widget renders in the first (docs/widget.md, "Where it appears"). */
const mount = "#svc-public-page-agent-inline,[data-svc-public-page-agent-inline]";
/** On such screens the panel covers the page, which becomes inert. */
const small = "(max-width: 30rem), (max-height: 30rem)";
const panelPart = { part: "panel", "aria-labelledby": "title" };

/** Mounts the widget in the page's element for it, or as a launcher in the corner. */
export function placeWidget(config: Config, host: HTMLElement, root: ShadowRoot): void {
  const [found, ...others] = document.querySelectorAll<HTMLElement>(mount);
  if (found) {
    for (const other of others) other.hidden = true;
    root.append(element("section.panel.inline", panelPart, ...drawPanel(config).nodes));
    return void found.replaceChildren(host);
  }
  host.setAttribute("role", "region");
  host.setAttribute("aria-label", config.assistant.title ?? words.title);
  root.append(...drawLauncher(config));
  fitToKeyboard(root);
  document.body.append(host);
}

/** The launcher and its panel, which is created when first opened. */
function drawLauncher(config: Config): HTMLElement[] {
  let panel: Panel | undefined;
  const dialog = element("dialog.panel.floating", { ...panelPart });
  const launcher = element(
    "button.launcher",
    { type: "button", part: "launcher", "aria-haspopup": "dialog", "aria-expanded": "false" },
    widgetIcon("ask"),
    words.launcher,
  );
  const setOpen = (isOpen: boolean): void => {
    launcher.hidden = isOpen;
    launcher.setAttribute("aria-expanded", String(isOpen));
  };
  launcher.addEventListener("click", () => {
    const close = (): void => dialog.close();
    panel ??= drawPanel(config, { close, leave: () => dialog.matches(":modal") && close() });
    if (!dialog.firstChild) dialog.append(...panel.nodes);
    setOpen(true);
    show(dialog);
    // Focus would open the on-screen keyboard, which hides the panel.
    if (matchMedia("(pointer: coarse)").matches) dialog.querySelector("button")?.focus();
    else panel.focus();
  });
  dialog.addEventListener("close", () => {
    setOpen(false);
    // The visitor followed a link to a passage and stays there.
    const { activeElement } = document;
    const { host } = launcher.getRootNode() as ShadowRoot;
    if (activeElement === host || activeElement === document.body) launcher.focus();
  });
  dialog.addEventListener("keydown", (event) => {
    if (event.key !== "Escape" || event.isComposing) return;
    event.preventDefault();
    dialog.close();
  });
  return [launcher, dialog];
}

function show(dialog: HTMLDialogElement): void {
  if (matchMedia(small).matches) dialog.showModal();
  else dialog.show();
}

/** An on-screen keyboard covers the panel without resizing it: the style sheet gets the visible height. */
function fitToKeyboard(root: ShadowRoot): void {
  const seen = window.visualViewport;
  const size = new CSSStyleSheet();
  root.adoptedStyleSheets.push(size);
  const fit = (): void => {
    if (seen?.scale === 1) size.replaceSync(`:host{--height:${seen.height}px;--top:${seen.offsetTop}px}`);
  };
  for (const change of ["resize", "scroll"]) seen?.addEventListener(change, fit);
}
