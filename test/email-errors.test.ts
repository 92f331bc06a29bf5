import t from "tap";
import { attachDomain } from "../core/account/domains.ts";
import { keys } from "../core/store/keys.ts";
import { mastersOf } from "../core/store/redis.ts";
import { makeSending, startMailing } from "../fixtures/email.ts";
import { onCluster } from "../fixtures/redis.ts";
import { eventually, startService } from "../fixtures/service.ts";

const nowhere = "smtp://127.0.0.1:9";

t.test("unauthorised callers are refused before anything is read", async (t) => {
  const service = await startMailing(t, nowhere);
  const { owner, root } = await makeSending(service);
  await service.grant("acme", "user_creator", "CREATOR");
  const creator = await service.as("user_creator");
  const stranger = await service.as("user_stranger");
  const pat = (
    await owner
      .post("/v2/account/tokens")
      .send({ name: "x", scopes: ["agent.strategy.read"] })
      .expect(201)
  ).body.token.secret;
  const lines = [
    ["get", `${root}/senders`],
    ["put", `${root}/senders/wrong`],
    ["get", `${root}/templates`],
    ["post", `${root}/templates`],
    ["put", `${root}/templates/tmpl_hello`],
    ["post", `${root}/messages`],
    ["get", `${root}/messages`],
    ["get", `${root}/messages/msg_x`],
    ["get", `${root}/events`],
    ["get", `${root}/suppressions`],
    ["post", `${root}/suppressions`],
    ["delete", `${root}/suppressions/a@far.example`],
  ] as const;
  for (const [verb, path] of lines) {
    t.match(
      (await service.visitor[verb](path)).body,
      { status: 401, code: "missing_bearer_token" },
      `${verb} ${path} without a token`,
    );
    const basic = await service.visitor[verb](path).set("Authorization", "Basic YTpi");
    t.match(basic.body, { status: 401, code: "missing_bearer_token" }, "with another scheme");
    for (const token of ["nonsense", pat]) {
      const answer = await service.visitor[verb](path).set("Authorization", `Bearer ${token}`);
      t.match(answer.body, { status: 401, code: "invalid_token" }, "with a token that is none, or is for agents");
    }
    t.match((await stranger[verb](path)).body, { status: 403, code: "forbidden" }, "as a stranger");
    t.match(
      (await stranger[verb](path.replace("/acme/", "/nobody/"))).body,
      { status: 403, code: "forbidden" },
      "of an unknown handle",
    );
    t.match((await creator[verb](path)).body, { status: 403, code: "insufficient_role" }, "with too low a role");
  }
  await service.grant("acme", "user_creator", "OPERATOR");
  await creator.get(`${root}/senders`).expect(200);
});

t.test("a domain that is not the account's is not there, and one that is not ready takes no sender", async (t) => {
  const service = await startMailing(t, nowhere);
  const owner = await service.handle("acme");
  const other = await service.handle("other");
  const path = "/v2/account/domains/acme.example/email-identity";
  await attachDomain(service.runtime, { account: "acct_acme", domain: "acme.example" });
  for (const domain of ["nowhere.example", "%20", "x"]) {
    t.match((await owner.get(`/v2/account/domains/${domain}/email-identity`)).body, {
      status: 404,
      code: "account_domain_not_found",
    });
  }
  t.match((await other.get(path)).body, { status: 404, code: "account_domain_not_found" }, "another account's");
  t.match((await other.post(`${path}/reconcile`)).body, { status: 404, code: "account_domain_not_found" });
  await service.grant("acme", "user_low", "CREATOR");
  t.match((await (await service.as("user_low")).get(path)).body, { status: 403, code: "insufficient_role" });
  t.match((await owner.get(path)).body.identity, {
    status: "PENDING",
    domain: "acme.example",
    mailFromDomain: "mail.acme.example",
    region: "default",
  });

  const put = (body: object, id = "sender_a") => owner.put(`/v2/handles/acme/email/senders/${id}`).send(body);
  const full = { domain: "acme.example", localPart: "support", purposes: ["TRANSACTIONAL_API"] };
  t.match((await put({ ...full, domain: "nowhere.example" })).body, { status: 404, code: "account_domain_not_found" });
  t.match((await put(full)).body, { status: 409, code: "domain_email_identity_not_ready" });
  t.same(
    (await owner.get("/v2/handles/acme/email/senders")).body,
    { senders: [], nextCursor: null },
    "nothing was stored",
  );
  t.match((await put({ ...full, enabled: false })).body.sender, {
    status: "PAUSED",
    enabled: false,
    fromEmail: "support@acme.example",
  });
  t.match((await put({ enabled: true })).body, { status: 409, code: "domain_email_identity_not_ready" });
  for (const id of ["support", "sender", "Sender_a", "sender_"]) {
    t.match((await put(full, id)).body, { status: 400, code: "invalid_sender_id" }, id);
  }
  for (const localPart of ["admin", "", 1, null]) {
    t.match(
      (await put({ ...full, localPart }, "sender_b")).body,
      { status: 400, code: "sender_local_part_not_allowed" },
      String(localPart),
    );
  }
  for (const without of [{ domain: "acme.example", purposes: ["CALENDAR"] }, { displayName: "Acme" }, {}]) {
    t.match(
      (await put(without, "sender_b")).body,
      { status: 400, code: "sender_local_part_not_allowed", errors: [{ path: "/localPart" }] },
      `without a local part: ${JSON.stringify(without)}`,
    );
  }
  const faults = [
    { domain: undefined },
    { purposes: undefined },
    { purposes: [] },
    { purposes: ["NEWS"] },
    { replyTo: "no" },
    { displayName: "a\r\nb" },
    { color: "red" },
  ];
  for (const fault of faults)
    t.match(
      (await put({ ...full, ...fault }, "sender_b")).body,
      { status: 400, code: "invalid_request" },
      JSON.stringify(fault),
    );
});

t.test("templates are refused by name", async (t) => {
  const service = await startMailing(t, nowhere);
  const { owner, root } = await makeSending(service);
  const post = (body: object) =>
    owner.post(`${root}/templates`).send({ templateId: "tmpl_b", name: "B", subject: "S", text: "T", ...body });
  const put = (body: object, id = "tmpl_hello") => owner.put(`${root}/templates/${id}`).send(body);
  for (const templateId of [undefined, "b", 7, "tmpl_"])
    t.match((await post({ templateId })).body, { status: 400, code: "invalid_template_id" });
  for (const fault of [
    { name: undefined },
    { subject: undefined },
    { text: undefined },
    { text: "" },
    { text: " \n" },
    { text: " ", html: "\t" },
    { subject: "a\nb" },
    { body: "x" },
  ]) {
    t.match((await post(fault)).body, { status: 400, code: "invalid_request" }, JSON.stringify(fault));
  }
  t.match((await post({ text: "Hi {{ name }}" })).body, {
    status: 400,
    code: "template_invalid",
    position: 3,
    field: "text",
  });
  t.match((await post({ html: "<script>{{a}}</script>" })).body, {
    status: 400,
    code: "template_invalid",
    field: "html",
  });
  t.match((await post({ subject: "{{#if}}" })).body, { status: 400, code: "template_invalid", field: "subject" });
  t.match((await post({ templateId: "tmpl_hello" })).body, { status: 409, code: "email_template_already_exists" });
  t.match((await put({ name: "x" }, "tmpl_none")).body, { status: 404, code: "email_template_not_found" });
  t.match((await put({ html: "{{" })).body, { status: 400, code: "template_invalid" });
  t.match((await put({ html: null })).body, { status: 400, code: "invalid_request" }, "a template keeps one body");
  t.match((await put({ subject: "New", expectedVersion: 4 })).body, {
    status: 409,
    code: "version_conflict",
    currentVersion: 1,
  });
  t.match((await put({ subject: "New", expectedVersion: 1 })).body.template, { activeVersion: 2 });
  t.match((await put({ subject: "Newer", expectedVersion: 1 })).body, {
    status: 409,
    code: "version_conflict",
    currentVersion: 2,
  });
});

t.test("an endlessly nested template is refused with its position, and delays nobody", async (t) => {
  const service = await startMailing(t, nowhere);
  const { owner, root } = await makeSending(service);
  const parts = ["<b>", "<ol><li>a", "<div><p>", "<ul><li>", "<blockquote>", "<a>x", "<table><tr><td>"];
  for (const part of parts) {
    const html = part.repeat(Math.floor(240_000 / part.length));
    const started = performance.now();
    const { status, body } = await owner
      .post(`${root}/templates`)
      .send({ templateId: `tmpl_${parts.indexOf(part)}`, name: "n", subject: "s", html });
    t.match({ status, ...body }, { status: 400, code: "template_invalid", field: "html", line: 1 }, part);
    t.ok(performance.now() - started < 3000, `${part} is answered soon`);
  }
});

t.test("a send is refused for the first of its faults, in the documented order", async (t) => {
  const service = await startMailing(t, nowhere, { env: { EMAIL_QUOTA_PER_DAY: "3" } });
  const { owner, root, ask } = await makeSending(service);
  const { redis } = service.runtime;
  const sender = (body: object) => owner.put(`${root}/senders/sender_main`).send(body).expect(200);
  const identity = keys.emailIdentity("acme.example", "acct_acme");
  await owner
    .post(`${root}/templates`)
    .send({ templateId: "tmpl_b", name: "B", subject: "{{b}}", text: "T" })
    .expect(201);
  await owner.put(`${root}/templates/tmpl_b`).send({ status: "PAUSED" }).expect(200);
  await owner.post(`${root}/suppressions`).send({ email: "gone@far.example" }).expect(201);
  await ask({ to: ["one@far.example", "two@far.example"] }).expect(202);
  await sender({ purposes: ["CALENDAR"], enabled: false });
  await redis.hset(identity, "status", "FAILED");
  const claim = await redis.hgetall(keys.domain("acme.example"));
  await redis.del(keys.domain("acme.example"));

  // Everything is wrong at once; each step mends one thing.
  const body: Record<string, unknown> = {
    to: ["gone@far.example", "new@far.example"],
    senderId: "sender_none",
    templateId: "tmpl_none",
    consentAttestation: false,
    variables: {},
    purpose: "NEWS",
  };
  const refused = async (status: number, code: string) => t.match((await ask(body)).body, { status, code }, code);
  await refused(400, "invalid_request");
  body.purpose = "TRANSACTIONAL_API";
  for (const consent of [undefined, false, "true", 1, null]) {
    body.consentAttestation = consent;
    await refused(400, "consent_attestation_required");
  }
  body.consentAttestation = true;
  await refused(404, "sender_profile_not_found");
  body.senderId = "sender_main";
  await refused(409, "sender_not_ready");
  await redis.hset(keys.domain("acme.example"), claim);
  await redis.hset(identity, "status", "READY");
  await sender({ enabled: true });
  await redis.hset(identity, "status", "FAILED");
  await redis.del(keys.domain("acme.example"));
  await refused(404, "account_domain_not_found");
  await redis.hset(keys.domain("acme.example"), claim);
  await refused(409, "domain_email_identity_not_ready");
  await redis.hset(identity, "status", "READY");
  await refused(403, "sender_purpose_not_allowed");
  await sender({ purposes: ["TRANSACTIONAL_API"] });
  await refused(404, "email_template_not_found");
  body.templateId = "tmpl_b";
  await refused(409, "email_template_not_active");
  await owner.put(`${root}/templates/tmpl_b`).send({ status: "ACTIVE" }).expect(200);
  await refused(400, "template_variables_missing");
  t.same((await ask(body)).body.errors, [{ path: "/variables/b", message: "is required" }]);
  body.variables = { b: "B", more: "ignored" };
  await refused(409, "email_recipient_suppressed");
  t.same((await ask(body)).body.errors, [{ path: "/to/0", message: "gone@far.example is suppressed" }], "it is named");
  body.to = ["New@far.example", "newer@far.example"];
  await refused(429, "email_quota_exceeded");
  const wait = Number((await ask(body)).headers["retry-after"]);
  t.ok(wait > 0 && wait <= 86_400, "with the time until the UTC day ends");
  body.to = ["New@far.example", "new@FAR.example"];
  t.match(
    (await ask(body)).body.message,
    { status: "QUEUED", recipientCount: 1 },
    "repeats are one recipient, whatever their case",
  );
  const kept = await Promise.all(mastersOf(redis).map((server) => server.keys(keys.messageOwner("*"))));
  t.equal(kept.flat().length, 2, "refused messages leave no key");
});

t.test("a send's shape is checked", async (t) => {
  const service = await startMailing(t, nowhere);
  const { ask } = await makeSending(service);
  for (const senderId of [undefined, "main", 7, null])
    t.match((await ask({ senderId })).body, { status: 400, code: "invalid_sender_id" });
  const faults = [
    ...[
      { to: undefined },
      { to: [] },
      { to: "ann@far.example" },
      { to: Array.from({ length: 51 }, (_, at) => `a${at}@far.example`) },
    ],
    ...[
      { purpose: undefined },
      { templateId: undefined },
      { variables: { name: 1 } },
      { variables: [] },
      { idempotencyKey: "" },
      { idempotencyKey: "x".repeat(256) },
    ],
    ...[
      { subject: "inline" },
      { html: "<p>inline</p>" },
      { text: "inline" },
      { content: {} },
      { from: "x" },
      { variables: { name: "a\r\nBcc: evil@far.example" } },
    ],
  ];
  for (const fault of faults)
    t.match((await ask(fault)).body, { status: 400, code: "invalid_request" }, JSON.stringify(fault).slice(0, 60));
  const smuggled = [
    "a@far.example, b@far.example",
    '"x" <a@far.example>\r\nRCPT TO:<evil@far.example>',
    "grp: a@far.example, b@far.example;",
    "a b@far.example",
    "Ann <ann@far.example>",
    "ann@far.example\u0000",
    "ann@far.example\r\nBcc: evil@far.example",
    '"ann"@far.example',
    "ann(comment)@far.example",
    "@far.example",
    "ann@",
    "ann@@far.example",
    "ann@[127.0.0.1]",
    "ann@far..example",
    ".ann@far.example",
    "änn@far.example",
    " ann@far.example",
    "<ann@far.example>",
    `${"a".repeat(65)}@far.example`,
  ];
  for (const address of smuggled) {
    const { body } = await ask({ to: ["ok@far.example", address] });
    t.match(body, { status: 400, code: "invalid_request", errors: [{ path: "/to/1" }] }, encodeURIComponent(address));
  }
});

t.test("recipients are counted and named as the request has them, repeats as one", async (t) => {
  const service = await startMailing(t, nowhere);
  const { owner, root, ask } = await makeSending(service);
  const fifty = Array.from({ length: 50 }, (_, at) => `a${at}@far.example`);
  const { message } = (await ask({ to: [...fifty, "A0@FAR.example"] }).expect(202)).body;
  t.same([message.recipientCount, message.deliveries.length], [50, 50]);
  const many = (await ask({ to: [...fifty, "b@far.example"], consentAttestation: false }).expect(400)).body;
  t.match(many, { code: "invalid_request", errors: [{ path: "/to" }] });
  await owner.post(`${root}/suppressions`).send({ email: "gone@far.example" }).expect(201);
  const { errors } = (await ask({ to: ["a@far.example", "A@far.example", "Gone@far.example"] }).expect(409)).body;
  t.same(errors, [{ path: "/to/2", message: "Gone@far.example is suppressed" }]);
});

t.test("missing resources are reported by code", async (t) => {
  const service = await startMailing(t, nowhere);
  const { owner, root, send } = await makeSending(service);
  t.match((await owner.get(`${root}/messages/msg_none`)).body, { status: 404, code: "message_not_found" });
  t.match((await owner.post(`${root}/messages/msg_none/cancel`)).body, { status: 404, code: "message_not_found" });
  t.match((await owner.get(`${root}/templates/tmpl_none`)).body, { status: 404, code: "email_template_not_found" });
  t.match((await owner.post(`${root}/templates/tmpl_none/preview`).send({})).body, {
    status: 404,
    code: "email_template_not_found",
  });
  t.match((await owner.get(`${root}/events`)).body, { status: 400, code: "event_filter_required" });
  t.match((await owner.get(`${root}/events?limit=5`)).body, { status: 400, code: "event_filter_required" });
  for (const query of [
    "purpose=NEWS",
    "since=yesterday",
    "recipient=no",
    "since=2026-01-01T00:00:00Z&cursor=x",
    "messageId=m&limit=0",
    "messageId=m&other=1",
  ]) {
    t.match((await owner.get(`${root}/events?${query}`)).body, { status: 400, code: "invalid_request" }, query);
  }
  for (const path of ["senders", "templates", "messages", "suppressions"]) {
    t.match((await owner.get(`${root}/${path}?limit=0`)).body, { status: 400, code: "invalid_request" });
    t.match((await owner.get(`${root}/${path}?cursor=!`)).body, { status: 400, code: "invalid_request" });
  }
  const id = await send(["ann@far.example"]);
  await owner.post(`${root}/messages/${id}/cancel`).expect(200);
  t.match((await owner.post(`${root}/messages/${id}/cancel`)).body, { status: 409, code: "message_not_cancellable" });
});

t.test("without a mail server, or while Redis can't take it, a send waits for better times", async (t) => {
  const without = await makeSending(await startService(t));
  const { body, headers } = await without.ask();
  t.match(body, { status: 503, code: "transactional_email_queue_unavailable" });
  t.ok(Number(headers["retry-after"]) > 0);
  t.match((await without.ask({ to: ["no"] })).body, { code: "invalid_request" }, "it is the last of the checks");
  await without.owner.post(`${without.root}/suppressions`).send({ email: "ann@far.example" }).expect(201);
  t.match((await without.ask()).body, { code: "email_recipient_suppressed" });
  t.same((await without.owner.get(`${without.root}/messages`)).body.messages, [], "nothing was stored");

  const service = await startMailing(t, nowhere);
  const { ask } = await makeSending(service);
  const waitForReplicas = async (count: string): Promise<void> => {
    for (const server of mastersOf(service.runtime.redis)) await server.config("SET", "min-replicas-to-write", count);
  };
  await waitForReplicas("1");
  t.match((await ask()).body, { status: 503, code: "transactional_email_queue_unavailable" });
  // A cluster's connections are made again after a refusal.
  const accepts = () =>
    waitForReplicas("0").then(
      () => true,
      () => false,
    );
  await eventually(accepts);
  await eventually(accepts);
  const isBack = async () => (await ask()).status === 202;
  t.ok(onCluster ? await eventually(isBack) : await isBack());
});
