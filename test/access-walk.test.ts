import { generateKeyPair, SignJWT } from "jose";
import t from "tap";
import { Metrics } from "../api/metrics.ts";
import type { Access, Row } from "../api/route.ts";
import { rows } from "../api/rows.ts";
import type { Runtime } from "../core/platform/runtime.ts";
import { type Service, startService } from "../fixtures/service.ts";
import { type Scope, scopes } from "../schemas/account.ts";

/** A new route is walked from the day that it is a row. */
const all = rows(new Metrics({} as Runtime));
/** Every row that asks for a token. */
const guarded = all.filter(({ access }) => access.kind === "user" || access.kind === "handle");

interface Credential {
  name: string;
  token: string | undefined;
  /** The code that a row's access must answer, or undefined where the row's own function is reached. */
  refused(access: Access): string | undefined;
}

const roles = ["CREATOR", "OPERATOR", "OWNER"] as const;
const always = (code: string) => () => code;

t.test("every owner route lets in exactly those whom its access column names", async (t) => {
  const service = await startService(t, { env: { PUBLIC_SCHEDULING_RATE: "" } });
  const credentials = await makeCredentials(service);
  t.ok(guarded.length > 20);
  for (const row of guarded) {
    await t.test(`${row.method} ${row.path}`, async (t) => {
      for (const { name, token, refused } of credentials) {
        const { status, code } = await ask(service, row, token);
        const expected = refused(row.access);
        if (expected) t.equal(code, expected, name);
        else
          t.ok(
            status !== 401 && code !== "forbidden" && code !== "insufficient_scope" && !isRoleRefusal(row, code),
            `${name}: ${status} ${code}`,
          );
      }
    });
  }
});

t.test("a handle that is unknown or inactive answers like one that is someone else's", async (t) => {
  const service = await startService(t);
  await service.handle("acme", { owner: "user_owner" });
  const token = await service.token("user_owner");
  for (const row of guarded.filter(({ access }) => access.kind === "handle")) {
    const known = await ask(service, row, await service.token("user_stranger"));
    const unknown = await ask(service, row, token, "nobody");
    t.same([known.status, known.code], [403, "forbidden"], `${row.method} ${row.path}`);
    t.same(unknown, known, `${row.method} ${row.path}`);
  }
});

t.test("an id in a path that can't exist answers like one that doesn't", async (t) => {
  const env = { PUBLIC_PAGE_AGENT_ENABLED: "1", PUBLIC_PAGE_AGENT_RATE: "1000", PUBLIC_BOOKINGS_RATE: "0" };
  const service = await startService(t, { env });
  await service.handle("acme", { owner: "user_owner" });
  const token = await service.token("user_owner");
  for (const row of all.filter(({ path }) => /:(?!handle\b)/.test(path))) {
    const unknown = await ask(service, row, token);
    t.not(unknown.status, 500);
    for (const id of ["x".repeat(3000), "a b", "%7D%3A*", "Ünknown"])
      t.same(await ask(service, row, token, "acme", () => id), unknown, `${row.method} ${row.path}, ${id.slice(0, 9)}`);
  }
});

/** Routes of the account check the role themselves, on the handles of the account that they name. */
function isRoleRefusal({ access }: Row, code: string | undefined): boolean {
  return access.kind === "handle" && code === "insufficient_role";
}

async function makeCredentials(service: Service): Promise<Credential[]> {
  const owner = await service.handle("acme", { owner: "user_OWNER" });
  await service.handle("elsewhere", { owner: "user_stranger" });
  await service.grant("acme", "user_CREATOR", "CREATOR");
  await service.grant("acme", "user_OPERATOR", "OPERATOR");
  const tokens = await Promise.all(scopes.map(async (scope) => [scope, await personal(owner, [scope])] as const));
  return [
    { name: "no token", token: undefined, refused: always("missing_bearer_token") },
    ...(await forged(service)).map(([name, token]) => ({ name, token, refused: always("invalid_token") })),
    ...tokens.map(([scope, token]) => ({
      name: `token with ${scope}`,
      token,
      refused: (access: Access) => tokenRefusal(access, scope),
    })),
    {
      name: "a stranger's token",
      token: await personal(await service.as("user_stranger"), [...scopes]),
      refused: strangerTokenRefusal,
    },
    {
      name: "stranger",
      token: await service.token("user_stranger"),
      refused: ({ kind }) => (kind === "handle" ? "forbidden" : undefined),
    },
    ...(await Promise.all(
      roles.map(async (role, rank) => ({
        name: role,
        token: await service.token(`user_${role}`),
        refused: (access: Access) => roleRefusal(access, rank),
      })),
    )),
  ];
}

function roleRefusal(access: Access, rank: number): string | undefined {
  return access.kind === "handle" && roles.indexOf(access.role) > rank ? "insufficient_role" : undefined;
}

/** The walk's tokens belong to an owner, so that only their scope can be in the way. */
function tokenRefusal(access: Access, scope: Scope): string | undefined {
  if (access.kind !== "handle" || access.scopes === undefined) return "invalid_token";
  return access.scopes.includes(scope) ? undefined : "insufficient_scope";
}

function strangerTokenRefusal(access: Access): string | undefined {
  return access.kind === "handle" && access.scopes ? "forbidden" : "invalid_token";
}

async function personal(user: Awaited<ReturnType<Service["as"]>>, held: Scope[]): Promise<string> {
  return (await user.post("/v2/account/tokens").send({ name: "Walk", scopes: held }).expect(201)).body.token.secret;
}

/** Tokens that look good and aren't, all of an owner. */
async function forged({ runtime }: Service): Promise<[string, string][]> {
  const { signingKey: own, env } = runtime;
  const now = Math.floor(Date.now() / 1000);
  const claims = { sub: "user_OWNER", iss: env.BASE_URL, aud: env.BASE_URL, iat: now - 600, exp: now + 600 };
  const signed = (payload: object, key: CryptoKey | Uint8Array = own.private, alg = "EdDSA") =>
    new SignJWT({ ...payload }).setProtectedHeader({ alg, kid: own.kid }).sign(key);
  const part = (value: object) => Buffer.from(JSON.stringify(value)).toString("base64url");
  const other = await generateKeyPair("EdDSA", { crv: "Ed25519" });
  return [
    ["garbage", "garbage"],
    ["expired", await signed({ ...claims, exp: now - 10 })],
    ["wrong audience", await signed({ ...claims, aud: "https://elsewhere.test" })],
    ["wrong issuer", await signed({ ...claims, iss: "https://elsewhere.test" })],
    ["another key", await signed(claims, other.privateKey)],
    ["none", `${part({ alg: "none", kid: own.kid })}.${part(claims)}.`],
    ["HS256 with the public key", await signed(claims, Buffer.from(own.publicJwk.x as string, "base64url"), "HS256")],
    [
      "HS256 with the published key",
      await signed(claims, new TextEncoder().encode(JSON.stringify(own.publicJwk)), "HS256"),
    ],
    ["a token that was never made", `pat_${"0".repeat(36)}`],
  ];
}

/** Sends as little as the row's path allows; the body is empty, so that a row that lets in refuses it or finds nothing. */
async function ask(
  service: Service,
  row: Row,
  token: string | undefined,
  handle = "acme",
  idOf = (name: string) => `some-${name.toLowerCase()}`,
): Promise<{ status: number; code: string | undefined }> {
  const path = row.path.replace(":handle", handle).replace(/:(\w+)/g, (_, name: string) => idOf(name));
  const verb = row.method.toLowerCase() as "get" | "post" | "put" | "delete";
  const asked = service.visitor[verb](path);
  const { status, body } = await (token ? asked.set("Authorization", `Bearer ${token}`) : asked);
  return { status, code: body.code };
}
