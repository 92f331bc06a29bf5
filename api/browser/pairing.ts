/** The pairing page of an installation with its own sign-in host: takes the token from the fragment and sends the decision with it. */
import { isUnread } from "./account/focus.ts";

const form = document.querySelector<HTMLFormElement>("#decide");
const signIn = document.querySelector<HTMLElement>("#sign-in");
const said = document.querySelector<HTMLElement>("#said");
/** The page's texts, in the language that the service chose. */
const words = JSON.parse(document.querySelector("#pairing-words")?.textContent ?? "{}") as Record<string, string>;
const token = new URLSearchParams(location.hash.slice(1)).get("token");

if (form && token) {
  // The token must not stay in the address bar or the history.
  history.replaceState(null, "", location.pathname + location.search);
  const who = form.querySelector("#who");
  if (who) who.textContent = nameIn(token);
  show(form);
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    if (isUnread()) return;
    void decide(form, token, (event.submitter as HTMLButtonElement).value);
  });
}

async function decide(form: HTMLFormElement, token: string, decision: string): Promise<void> {
  const buttons = form.querySelectorAll("button");
  for (const button of buttons) button.disabled = true;
  say(words.wait);
  const answer = await send(token, { attemptId: form.dataset.attempt ?? "", decision }).catch(() => undefined);
  if (answer?.status === 200) return finish(decision);
  if (answer?.status === 401) return signOut();
  if (answer?.status === 409 || answer?.status === 410) return end(words.over);
  for (const button of buttons) button.disabled = false;
  say(words.again);
}

function send(token: string, body: object): Promise<Response> {
  return fetch("/oauth/assistant/desktop/authorize", {
    method: "POST",
    headers: { authorization: `Bearer ${token}`, "content-type": "application/json" },
    body: JSON.stringify(body),
  });
}

function finish(decision: string): void {
  const paired = decision === "allow";
  const title = (paired ? words.paired : words.denied) ?? "";
  document.title = title;
  const main = document.querySelector("main");
  const [heading, text] = [document.createElement("h1"), document.createElement("p")];
  heading.textContent = title;
  heading.tabIndex = -1;
  text.textContent = (paired ? words.pairedDetail : words.deniedDetail) ?? "";
  main?.replaceChildren(heading, text, ...(paired ? withdrawal() : []));
  heading.focus();
}

/** What is left of the form: the button that ends the desktop's session. */
function withdrawal(): HTMLElement[] {
  if (!form || !said) return [];
  form.querySelector("[value=allow]")?.remove();
  const button = form.querySelector("button");
  if (button) Object.assign(button, { disabled: false, textContent: words.withdraw ?? "" });
  say();
  return [form, said];
}

function signOut(): void {
  if (form) form.hidden = true;
  if (signIn) signIn.hidden = false;
  say(words.signedOut);
}

function end(text: string | undefined): void {
  if (form) form.hidden = true;
  say(text);
}

function show(form: HTMLFormElement): void {
  form.hidden = false;
  if (signIn) signIn.hidden = true;
}

function say(text = ""): void {
  if (said) said.textContent = text;
}

/** The user that the token names, for display; the service verifies the token. */
function nameIn(token: string): string {
  try {
    const bytes = atob((token.split(".")[1] ?? "").replace(/-/g, "+").replace(/_/g, "/"));
    const claims = JSON.parse(new TextDecoder().decode(Uint8Array.from(bytes, (letter) => letter.charCodeAt(0))));
    return String(claims.email ?? claims.sub ?? "");
  } catch {
    // Not a token; the service will reject it.
    return "";
  }
}
