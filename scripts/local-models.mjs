/** Finds models of an Ollama server on this machine. */

/** Ms within which a local server must respond. */
const TIMEOUT_MS = 800;

/**
 * `{ host, chat, embedding }` of an Ollama server: its first chat model and its first embedding model, each undefined if it has none.
 * Undefined if no server responds.
 */
export async function findLocalModels(host) {
  const listed = await ask(host, "/api/tags");
  if (!Array.isArray(listed?.models)) return undefined;
  // Models that only forward to another machine have a remote host.
  const names = listed.models.filter((one) => !one.remote_host).map(({ name }) => name);
  const shown = await Promise.all(names.map((model) => ask(host, "/api/show", { model })));
  const able = (what) => names.find((_, at) => shown[at]?.capabilities?.includes(what));
  return { host, chat: able("completion"), embedding: able("embedding") };
}

async function ask(host, path, body) {
  const address = new URL(path, host.includes("://") ? host : `http://${host}`);
  const options = body ? { method: "POST", body: JSON.stringify(body) } : {};
  try {
    const answer = await fetch(address, { ...options, signal: AbortSignal.timeout(TIMEOUT_MS) });
    return answer.ok ? await answer.json() : undefined;
  } catch {
    return undefined; // no server
  }
}
