/** Writes the demo handle of fixtures/demo into a running service, through its API. A second run updates settings, pages and documents. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { root, Unready } from "./setup.mjs";

const folder = join(root, "fixtures", "demo");
const read = (name) => readFileSync(join(folder, name), "utf8");

/** The handle, its owner, its pages and its documents. */
export const demo = JSON.parse(read("demo.json"));

/** Writes settings, pages, documents and event types with a token of the demo's owner. */
export async function seed(base, token) {
  const call = caller(`${base}/v2/handles/${demo.handle}`, token);
  await call("PUT", "/settings", demo.settings);
  for (const page of demo.pages) await putPage(call, page);
  for (const event of demo.events) await call("POST", "/scheduling/event-types", event, 409);
  const { documents } = await call("GET", "/knowledge/documents?limit=100");
  for (const document of demo.documents) await putDocument(call, document, documents);
}

/** Gives the demo handle a sender for every purpose, a template, and a campaign whose rule mails a thank-you for each lead. */
export async function seedMail(base, token) {
  const call = caller(`${base}/v2/handles/${demo.handle}`, token);
  const { senderId, ...sender } = demo.sender;
  await call("PUT", `/email/senders/${senderId}`, { ...sender, domain: demo.mailDomain });
  await call("POST", "/email/templates", demo.template, 409);
  const { rule, ...campaign } = demo.campaign;
  const made = await call("POST", "/campaigns", campaign, 409);
  if (!made.code) await call("POST", `/campaigns/${campaign.campaignId}/email-rules`, rule);
}

/** Connects the demo handle to the test checkout, and gives it something to sell. */
export async function seedCheckout(base, token) {
  const call = caller(`${base}/v2/handles/${demo.handle}/scheduling`, token);
  const { credentials } = await call("GET", "/integrations");
  if (!credentials.some(({ providerKey }) => providerKey === "stripe")) {
    const { authorizeUrl } = await call("POST", "/integrations/stripe/oauth/start", {});
    const answer = await fetch(authorizeUrl, { redirect: "manual" });
    const back = new URL(answer.headers.get("location")).searchParams;
    const body = { code: back.get("code"), state: back.get("state") };
    await call("POST", "/integrations/stripe/oauth/callback", body);
  }
  await call("POST", "/event-types", demo.paidEvent, 409);
}

async function putPage(call, { file, ...page }) {
  const { pageSlug, ...changes } = {
    template: "html_render",
    accessMode: "PUBLIC",
    status: "PUBLISHED",
    ...page,
    content: read(file),
  };
  const made = await call("POST", "/pages", { pageSlug, ...changes }, 409);
  if (made.code) await call("PUT", `/pages/${pageSlug}`, changes);
}

/** The title identifies a document. */
async function putDocument(call, { file, ...document }, there) {
  const body = { ...document, contentType: "text/markdown", containerTags: ["public-page-agent"], content: read(file) };
  const known = there.find(({ title }) => title === document.title);
  if (known) await call("PUT", `/knowledge/documents/${known.documentId}`, body);
  else await call("POST", "/knowledge/documents", body);
}

function caller(base, token) {
  return async (method, path, body, accepted) => {
    const headers = { authorization: `Bearer ${token}`, "content-type": "application/json" };
    const answer = await fetch(base + path, { method, headers, ...(body ? { body: JSON.stringify(body) } : {}) });
    const result = await answer.json();
    if (!answer.ok && answer.status !== accepted)
      throw new Unready(`The demo could not be written: ${JSON.stringify(result)}`);
    return result;
  };
}
