/** What other modules may import from assistant. */
export { answerRun } from "./answer.ts";
export { askQuestion, chat, resumeChat, stopChat } from "./chat.ts";
export { admitQuestion, mustBeOpen } from "./gate.ts";
export { formHtml, type LeadForm, readLeadForm, type StoredForm } from "./lead-form.ts";
export { openModel } from "./ollama.ts";
