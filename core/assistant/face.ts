/** What other modules may import from assistant. */
export { answerRun } from "./answer.ts";
export { askQuestion, chat, resumeChat, stopChat } from "./chat.ts";
export { admitQuestion, mustBeOpen } from "./gate.ts";
export { formHtml } from "./lead-form-html.ts";
export { type LeadForm, readLeadForm, type StoredForm } from "./lead-forms.ts";
export { openModel } from "./ollama.ts";
