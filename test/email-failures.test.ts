import t from "tap";
import {
  classifySmtpFailure,
  type DeliveryProgress,
  SmtpFailure,
  type SmtpFailureClass,
  type SmtpPhase,
} from "../core/engines/mail/smtp.ts";

const minute = 60_000;

function failed(phase: SmtpPhase, response?: string): SmtpFailure {
  const more = response === undefined ? {} : { response, responseCode: Number(response.slice(0, 3)) };
  return new SmtpFailure(phase, Object.assign(new Error("It broke."), more));
}

function classified(phase: SmtpPhase, response?: string, more: Partial<DeliveryProgress> = {}): SmtpFailureClass {
  return classifySmtpFailure(failed(phase, response), { attempt: 1, purpose: "TRANSACTIONAL_API", age: 0, ...more });
}

t.test("a failure is classified by phase and code", async (t) => {
  const cases: [SmtpPhase, string | undefined, Record<string, unknown>][] = [
    ["connect", undefined, { kind: "provider", reason: /^server_unavailable/ }],
    ["connect", "421 4.3.2 busy", { kind: "provider" }],
    ["connect", "554 5.7.1 go away", { kind: "provider" }],
    ["connect", "535 5.7.8 bad login", { kind: "provider" }],
    ["mail", "530 5.7.0 log in first", { kind: "provider" }],
    ["mail", "454 4.7.0 TLS not available", { kind: "provider" }],
    ["mail", "550 5.1.8 bad sender", { kind: "failed", reason: /^sender_refused/ }],
    ["mail", "450 4.1.8 later", { kind: "deferred", reason: /^deferred_by_server/ }],
    [
      "recipient",
      "550 5.1.1 unknown",
      { kind: "failed", hard: true, reason: /^recipient_refused: 550 5\.1\.1 unknown$/ },
    ],
    ["recipient", "550-5.1.10 null MX\n550 5.1.10 more", { kind: "failed", hard: true }],
    ["recipient", "550 5.2.1 disabled", { kind: "failed", hard: true }],
    ["recipient", "550 5.7.1 policy", { kind: "failed", hard: false }],
    ["recipient", "552 5.2.2 full", { kind: "failed", hard: false }],
    ["recipient", "550 unknown", { kind: "failed", hard: false }],
    ["recipient", "454 4.7.1 relay access denied", { kind: "deferred", code: 454 }],
    ["recipient", "530 5.7.0 log in first", { kind: "deferred", code: 530 }],
    ["content", "454 4.7.0 throttled", { kind: "deferred", code: 454 }],
    ["recipient", "450 4.2.1 greylisted", { kind: "deferred" }],
    ["recipient", "421 4.3.2 closing", { kind: "deferred" }],
    ["data", "554 5.5.1 no valid recipients", { kind: "failed" }],
    ["content", "554 5.7.1 spam", { kind: "failed", hard: false, reason: /^content_refused/ }],
    ["content", "451 4.3.0 later", { kind: "deferred" }],
    ["mail", undefined, { kind: "deferred", reason: /^connection_lost/ }],
    ["content", undefined, { kind: "deferred", reason: /^outcome_unknown/ }],
  ];
  for (const [phase, response, found] of cases) t.match(classified(phase, response), found, `${phase} ${response}`);
});

t.test("a mail is tried for 24 hours with growing waits, a code for ten minutes", async (t) => {
  const sequence = (purpose: DeliveryProgress["purpose"]): { waits: number[]; life: number } => {
    const waits: number[] = [];
    for (let age = 0; ; ) {
      const found = classified("recipient", "450 4.2.0 later", { attempt: waits.length + 1, purpose, age });
      if (found.kind !== "deferred") return { waits, life: age };
      waits.push(found.wait);
      age += found.wait;
    }
  };
  const mail = sequence("TRANSACTIONAL_API");
  t.ok(mail.life > 22 * 60 * minute && mail.life <= 24 * 60 * minute, `${mail.life} ms`);
  t.ok(
    mail.waits.every((wait, at) => at === 0 || at > 5 || wait > (mail.waits[at - 1] as number)),
    "they grow",
  );
  t.ok(mail.waits.every((wait) => wait >= 12_000 && wait <= 72 * minute));
  const code = sequence("LEAD_VERIFICATION");
  t.ok(code.life > 7 * minute && code.life <= 10 * minute, `${code.life} ms`);
  t.match(classified("recipient", "450 x", { age: 24 * 60 * minute }), {
    kind: "failed",
    reason: /^given_up: deferred_by_server/,
    code: 450,
    hard: false,
  });
});

t.test("a reason is one line and of a length that fits", async (t) => {
  const found = classified("recipient", `550 ${"x\r\ny ".repeat(500)}`);
  t.ok(found.reason.length < 400);
  t.notMatch(found.reason, /[\r\n]/);
  t.notMatch(classified("recipient", `550 x${"🚲".repeat(300)}`).reason, /\p{Cs}/u);
  t.notMatch(classified("recipient", `550 ${"🚲".repeat(300)}`).reason, /\p{Cs}/u);
});
