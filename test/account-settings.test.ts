import t from "tap";
import { startService } from "../fixtures/service.ts";

const path = "/v2/handles/acme/settings";

t.test("an operator reads and changes the public settings of a handle", async (t) => {
  const service = await startService(t);
  const owner = await service.handle("acme");
  const defaults = { displayName: null, language: null, leadNotifications: true, logoUrl: null };
  t.same((await owner.get(path).expect(200)).body, { settings: defaults });
  const changed = { displayName: "Acme Tours", language: "de-AT", logoUrl: "https://acme.example/logo.svg" };
  t.same((await owner.put(path).send(changed).expect(200)).body.settings, { ...defaults, ...changed });
  await owner.put(path).send({ leadNotifications: false, displayName: null }).expect(200);
  const { settings } = (await owner.get(path).expect(200)).body;
  t.same(
    settings,
    { ...changed, displayName: null, leadNotifications: false },
    "absent keys keep their value, null resets",
  );
});

t.test("settings that cannot be shown are refused, and a creator has no say", async (t) => {
  const service = await startService(t);
  const owner = await service.handle("acme");
  for (const [wrong, at] of [
    [{ displayName: "" }, "/displayName"],
    [{ displayName: "two\nlines" }, "/displayName"],
    [{ language: "not a language" }, "/language"],
    [{ language: "deutsch" }, "/language"],
    [{ logoUrl: "http://acme.example/logo.png" }, "/logoUrl"],
    [{ logoUrl: "javascript:alert(1)" }, "/logoUrl"],
    [{ leadNotifications: "no" }, "/leadNotifications"],
    [{ colour: "red" }, "/colour"],
  ] as const) {
    const { body } = await owner.put(path).send(wrong).expect(400);
    t.match(body, { code: "invalid_request", errors: [{ path: at }] });
  }
  const creator = await service.grant("acme", "user_creator", "CREATOR").then(() => service.as("user_creator"));
  t.match((await creator.get(path).expect(403)).body, { code: "insufficient_role" });
});

t.test("webhooks are managed under the handle, and under their earlier path", async (t) => {
  const service = await startService(t);
  const owner = await service.handle("acme");
  const made = await owner.post("/v2/handles/acme/webhooks").send({ url: "http://127.0.0.1:9/hook" }).expect(201);
  const { webhookId } = made.body.webhook;
  await owner.get(`/v2/handles/acme/scheduling/webhooks/${webhookId}`).expect(200);
  await owner.delete(`/v2/handles/acme/webhooks/${webhookId}`).expect(204);
});
