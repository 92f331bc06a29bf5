import type { SignInStep } from "../core/account/face.ts";
import { cardView } from "./account-view.ts";
import type { Request, View } from "./route.ts";
import { escapeHtml } from "./shell.ts";

/** The page of a sign-in's step; the last one sets the cookie and goes where the person came from. */
export function signInView(step: SignInStep, { runtime }: Request): View {
  const leadsTo = [runtime.env.BASE_URL, runtime.env.APP_URL].map((address) => new URL(address).origin);
  if (step.step === "done") return done(step);
  return cardView({
    leadsTo: [...new Set(leadsTo)],
    status: step.problem ? 400 : 200,
    ...(step.step === "email" ? emailForm(step) : codeForm(step)),
    ...(step.step === "code" && step.cookies ? { headers: { "Set-Cookie": step.cookies } } : {}),
  });
}

function emailForm({ returnTo, problem }: Extract<SignInStep, { step: "email" }>): { title: string; body: string } {
  const said = { email: "That is not an email address.", ended: "That code is over. Ask for a new one." };
  const body = `<p>We will send a code to your email address.</p>
<form method="post">
${alert(problem && said[problem])}
<label>Email address<input type="email" name="email" autocomplete="email" autofocus required maxlength="254"${wrong(problem)}></label>
${kept({ returnTo })}<button>Send the code</button>
</form>`;
  return { title: "Sign in", body };
}

function codeForm({ returnTo, signInId, email, problem }: Extract<SignInStep, { step: "code" }>): {
  title: string;
  body: string;
} {
  const body = `<p>If <strong>${escapeHtml(email)}</strong> has an account here, a six-digit code is on its way. It works for ten minutes.</p>
<form method="post">
${alert(problem && "That code is not right.")}
<label>Code<input name="code" class="digits" inputmode="numeric" autocomplete="one-time-code" autofocus required maxlength="7"${wrong(problem)}></label>
${kept({ returnTo, signInId })}<button>Sign in</button>
</form>
<p class="other"><a href="?returnTo=${escapeHtml(encodeURIComponent(returnTo))}">Use another address</a></p>`;
  return { title: "Enter the code", body };
}

function done({ email, location, cookies }: Extract<SignInStep, { step: "done" }>): View {
  const body = `<p>You are signed in as <strong>${escapeHtml(email)}</strong>.</p>`;
  const more = location
    ? { status: 303, headers: { "Set-Cookie": cookies, Location: location } }
    : { headers: { "Set-Cookie": cookies } };
  return cardView({ title: "Signed in", body, ...more });
}

function alert(text: string | undefined): string {
  return text ? `<p class="alert" role="alert" id="problem">${text}</p>` : "";
}

function wrong(problem: string | undefined): string {
  return problem ? ' aria-invalid="true" aria-describedby="problem"' : "";
}

function kept(fields: Record<string, string>): string {
  return Object.entries(fields)
    .map(([name, value]) => `<input type="hidden" name="${name}" value="${escapeHtml(value)}">`)
    .join("");
}
