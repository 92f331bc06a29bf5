import type { LeadSection } from "../../../schemas/assistant.ts";
import type { Answer } from "./answer.ts";
import { questionButtons } from "./answer-cards.ts";
import type { Config } from "./config.ts";
import { element, randomId, widgetIcon } from "./element.ts";
import { confirmLead, readEntries, type Submission, submitLead } from "./lead.ts";
import { drawLeadFrame } from "./lead-frame.ts";
import { words } from "./words.ts";

/** The parts of the widget that a lead card uses. */
export interface LeadHost {
  config: Config;
  ask(question: string): void;
  /** Scrolls an element of the conversation to the top. */
  reveal(node: HTMLElement): void;
  say(words: string): void;
}

/** The card of a lead section: first an invitation; when opened, the form, with the next steps below until the form is sent. */
export function leadCard(section: LeadSection, host: LeadHost, { followUps }: Answer): HTMLElement {
  const { collapsedTitle, collapsedBody, dynamicView } = section;
  const content = element("div.lead-content", { id: `lead-${randomId()}`, hidden: true });
  const [title, body] = [collapsedTitle, collapsedBody];
  const text = element("span", element("strong", { dir: "auto" }, title), element("span", { dir: "auto" }, body));
  const turn = (): void => {
    if (!content.firstChild) fill();
    content.hidden = !content.hidden;
    toggle.setAttribute("aria-expanded", String(!content.hidden));
    if (!content.hidden) host.reveal(card);
  };
  const closed = { part: "lead-toggle", "aria-expanded": "false", "aria-controls": content.id };
  const toggle = element("button.lead-toggle", { ...closed, click: turn }, text, widgetIcon("open"));
  const about = { role: "group", "aria-label": collapsedTitle, "data-accent": dynamicView.visualAccent };
  const card = element("div.lead", { part: "lead-card", ...about }, toggle, content);
  const fill = (): void => {
    const way = element("div.lead-way", ...drawView(section, followUps, host));
    const form = drawForm(section, host, () => way.remove());
    content.append(form, way);
  };
  return card;
}

/** The steps that the section proposes, without those that the visitor has read. */
function drawView(section: LeadSection, followUps: string[], host: LeadHost): (HTMLElement | false)[] {
  const { dynamicView: view } = section;
  const { label, body } = view.recommendedPath;
  const steps = view.momentumSteps.map((step) =>
    element("li", { dir: "auto" }, element("strong", step.title), element("span", step.body)),
  );
  const signals = view.fitSignals.filter((signal) => !isKnown(signal, section));
  const fits = signals.map((signal) => element("li", { dir: "auto" }, widgetIcon("tick"), signal));
  const chips = view.questionChips.filter((chip) => !followUps.includes(chip));
  return [
    element("h3", { dir: "auto" }, view.headline),
    element("p", { dir: "auto" }, view.subhead),
    element("div.path", { dir: "auto" }, element("strong", label), element("p", body)),
    element("h4", words.nextSteps),
    element("ol.momentum", ...steps),
    fits.length > 0 && element("h4", words.fit),
    fits.length > 0 && element("ul.fit", ...fits),
    chips.length > 0 && questionButtons(chips, words.suggestions, host.ask),
  ];
}

/** True for a signal that repeats the card, the question or the names of the sources. */
function isKnown(signal: string, { collapsedTitle, collapsedBody, dynamicView, leadContext }: LeadSection): boolean {
  const said = [collapsedTitle, collapsedBody, dynamicView.headline, dynamicView.subhead].map((text) =>
    text.toLowerCase(),
  );
  const { visitorQuestion, evidenceTitles } = leadContext;
  const isSaid = said.some((text) => text.includes(signal.toLowerCase()));
  return isSaid || [visitorQuestion, ...evidenceTitles].some((text) => text !== "" && signal.includes(text));
}

/** The form with its disclosure, until it is sent. */
function drawForm(section: LeadSection, host: LeadHost, sent: () => void): HTMLElement {
  const problem = element("p.problem", { role: "alert" });
  let isSending = false;
  const done = (result: Submission): void => {
    isSending = false;
    if (result.kind === "accepted" || result.kind === "code") {
      sent();
      return void finish(form, result, host);
    }
    const sentences = { wrong: words.checkForm, limited: words.tooManyLeads, failed: words.notSent };
    problem.textContent = sentences[result.kind];
    frame.reopen();
  };
  const submitted = (payload: unknown): void => {
    if (isSending || !frame.node.isConnected) return;
    const entries = readEntries(section.fields, payload);
    if (!entries) return void done({ kind: "wrong" });
    isSending = true;
    problem.textContent = "";
    host.say(words.sending);
    void submitLead(host.config, section, entries).then(done);
  };
  const missing = (): void => {
    problem.append(words.formMissing);
    const again = (): void => {
      const next = drawForm(section, host, sent);
      form.replaceWith(next);
      next.querySelector("iframe")!.focus();
    };
    frame.node.replaceWith(element("button.tool", { click: again }, widgetIcon("retry"), words.retry));
  };
  const frame = drawLeadFrame(section, host.config, { submitted, missing });
  const disclosure = element("p.disclosure", { part: "lead-disclosure", dir: "auto" }, section.contextDisclosure);
  const form = element("div.lead-form", frame.node, problem, disclosure);
  return form;
}

/** Shows thanks instead of the form, after the code if the owner requires one. */
function finish(form: HTMLElement, result: Submission, host: LeadHost): void {
  const confirmed = (): void => finish(form, { kind: "accepted" }, host);
  const thanks = element("p.sent", { tabindex: "-1" }, widgetIcon("tick"), words.sent);
  const shown = result.kind === "code" ? drawCode(result.leadId, host.config, confirmed) : thanks;
  form.replaceChildren(shown);
  (shown.querySelector("input") ?? shown).focus();
  host.say(result.kind === "code" ? words.codeNeeded : words.sent);
}

function drawCode(leadId: string, config: Config, confirmed: () => void): HTMLElement {
  const digits = {
    inputmode: "numeric",
    autocomplete: "one-time-code",
    maxlength: "20",
    pattern: "\\P{Nd}*(\\p{Nd}\\P{Nd}*){6}",
  };
  const input = element("input", { ...digits, required: true });
  const problem = element("p.problem", { role: "alert" });
  let isSending = false;
  const confirm = async (event: Event): Promise<void> => {
    event.preventDefault();
    // Five wrong codes end the lead's code: a double click must not count twice.
    if (isSending) return;
    isSending = true;
    problem.textContent = "";
    const kind = await confirmLead(config, leadId, input.value);
    isSending = false;
    if (kind === "accepted") return confirmed();
    problem.textContent = { wrong: words.wrongCode, limited: words.tooManyLeads, failed: words.failed }[kind];
  };
  const entry = element("label", words.code, input);
  const button = element("button.action", words.confirm);
  return element("form.code", { submit: confirm }, element("p", words.codeNeeded), entry, button, problem);
}
