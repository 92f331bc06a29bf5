/** Models of an Ollama server on this machine, if one answers. */

/** Ms in which the server must answer: it is here or it is not. */
const patience = 800;

/**
 * `{ host, chat, embedding }` of an Ollama server: the first model there that can chat and the first that embeds, each undefined
 * where there is none. Undefined where no server answers.
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
    const answer = await fetch(address, { ...options, signal: AbortSignal.timeout(patience) });
    return answer.ok ? await answer.json() : undefined;
  } catch {
    return undefined; // nobody answers there
  }
}
