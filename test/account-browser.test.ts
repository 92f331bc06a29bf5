import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import type { Browser, Page } from "playwright-core";
import t, { type Test } from "tap";
import {
  bundleAssets,
  fitsEverywhere,
  openPage,
  picture,
  startBrowser,
  violations,
  withoutBrowser,
} from "../fixtures/browser.ts";
import { DesktopClient } from "../fixtures/desktop-client.ts";
import { Inbox } from "../fixtures/inbox.ts";
import { freePort } from "../fixtures/ports.ts";
import { eventually, type Service, startService } from "../fixtures/service.ts";

const device = "Rechtsschutzversicherungsrechner (Linux)";

t.test("pairing in a browser", { skip: withoutBrowser }, run);

async function run(t: Test): Promise<void> {
  await bundleAssets();
  const browser = await startBrowser(t);
  const phone = { viewport: { width: 390, height: 844 } };

  await t.test(
    "a desktop is paired through an outside sign-in host, whose token never stays in the address",
    async (t) => {
      const { service, login } = await startWithLogin(t);
      const { client, page } = await startPairing(t, browser, service);
      t.ok(await page.getByText(client.code, { exact: true }).isVisible());
      t.ok(await page.getByText(device).isVisible());
      await picture(page, "pairing-signed-out");
      t.same(await problems(page), []);
      await page.getByRole("link", { name: "Sign in to continue" }).click();
      await page.getByRole("button", { name: "Allow" }).waitFor();
      t.match(login.asked, [`?returnTo=${encodeURIComponent(page.url())}`]);
      t.equal(new URL(page.url()).hash, "");
      t.ok(await page.getByText("user_acme@example.com").isVisible());
      t.ok(await page.getByText(client.code, { exact: true }).isVisible());
      await picture(page, "pairing-decision");
      t.same(await problems(page), []);
      const redeemed = client.paired();
      await page.getByRole("button", { name: "Allow" }).click();
      await page.getByRole("heading", { name: "Desktop paired" }).waitFor();
      const { status, body } = await redeemed;
      t.match(
        { status, body },
        { status: 200, body: { status: "authorised", relay: { baseUrl: service.runtime.env.BASE_URL } } },
      );
      await service.visitor
        .get("/v2/account/assistant/me")
        .set("Authorization", `Bearer ${body.session?.token}`)
        .expect(200);
      await picture(page, "pairing-done");
      t.same(await problems(page), []);
      await page.getByRole("button", { name: "That was a mistake: sign it out" }).click();
      await page.getByRole("heading", { name: "Pairing denied" }).waitFor();
      await service.visitor
        .get("/v2/account/assistant/me")
        .set("Authorization", `Bearer ${body.session?.token}`)
        .expect(401);
      await page.reload();
      t.ok(await page.getByRole("heading", { name: "This pairing has expired" }).isVisible());
      t.same(await problems(page), []);
      await picture(page, "pairing-over");
    },
  );

  await t.test("a person can deny, in the dark and on a phone", async (t) => {
    const { service } = await startWithLogin(t);
    const { client, page } = await startPairing(t, browser, service, { colorScheme: "dark", ...phone });
    await picture(page, "pairing-signed-out-dark");
    t.same(await problems(page), []);
    await page.getByRole("link", { name: "Sign in to continue" }).click();
    await page.getByRole("button", { name: "Deny" }).waitFor();
    await picture(page, "pairing-decision-dark");
    await page.getByRole("button", { name: "Deny" }).click();
    await page.getByRole("heading", { name: "Pairing denied" }).waitFor();
    t.match(await client.redeem(), { status: 403, body: { code: "attempt_denied" } });
  });

  await t.test("the built-in sign-in leads there and back by mail, and needs no script", async (t) => {
    for (const javaScriptEnabled of [true, false]) {
      const { service, inbox } = await startWithBuiltin(t);
      const { client, page } = await startPairing(t, browser, service, { javaScriptEnabled, ...phone });
      const look = async (name: string): Promise<void> => {
        if (!javaScriptEnabled) return;
        await picture(page, name);
        t.same(await problems(page), []);
      };
      await page.getByRole("link", { name: "Sign in to continue" }).click();
      await look("sign-in-email");
      await page.getByLabel("Email address").fill("user_acme@example.com");
      await page.getByRole("button", { name: "Send the code" }).click();
      await page.getByLabel("Code").fill("000000");
      await page.getByRole("button", { name: "Sign in" }).click();
      await page.getByRole("alert").waitFor();
      await look("sign-in-code-wrong");
      const code = await eventually(() => inbox.codeFor("user_acme@example.com"));
      // As it is copied from the mail's text, with the spaces before it.
      await page.getByLabel("Code").focus();
      await page.keyboard.insertText(`    ${code} `);
      await page.getByRole("button", { name: "Sign in" }).click();
      await page.getByText(client.code, { exact: true }).waitFor();
      t.notMatch(page.url(), /token/);
      t.ok(await page.getByText("user_acme@example.com").isVisible());
      await look("pairing-with-cookie");
      const redeemed = client.paired();
      await page.getByRole("button", { name: "Allow" }).click();
      await page.getByRole("heading", { name: "Desktop paired" }).waitFor();
      t.match(await redeemed, { status: 200, body: { status: "authorised" } });
      await look("pairing-done-with-cookie");
      await page.getByRole("button", { name: "That was a mistake: sign it out" }).click();
      await page.getByRole("heading", { name: "Pairing denied" }).waitFor();
    }
  });

  await t.test("a second click on a slow line neither uses up the code nor repeats the decision", async (t) => {
    const { service, inbox } = await startWithBuiltin(t);
    const { client, page } = await startPairing(t, browser, service);
    const network = await page.context().newCDPSession(page);
    const line = { offline: false, latency: 1000, downloadThroughput: -1, uploadThroughput: -1 };
    await network.send("Network.emulateNetworkConditions", line);
    const clickTwice = async (name: string): Promise<void> => {
      await page.waitForLoadState();
      const box = await page.getByRole("button", { name, exact: true }).boundingBox();
      for (let clicks = 0; box && clicks < 2; clicks++) {
        await page.mouse.click(box.x + box.width / 2, box.y + box.height / 2);
        await page.waitForTimeout(200);
      }
    };
    await page.getByRole("link", { name: "Sign in to continue" }).click();
    await page.getByLabel("Email address").fill("user_acme@example.com");
    await clickTwice("Send the code");
    await page.getByLabel("Code").fill(await eventually(() => inbox.codeFor("user_acme@example.com")));
    t.equal(inbox.mails.length, 1);
    await clickTwice("Sign in");
    await page.getByText(client.code, { exact: true }).waitFor();
    await clickTwice("Allow");
    await page.getByRole("heading", { name: "Desktop paired" }).waitFor();
  });

  await t.test("a click for a window that covered the decision is none for it", async (t) => {
    const outside = await startWithLogin(t);
    const builtin = await startWithBuiltin(t);
    const session = {
      name: "session",
      value: await builtin.service.token("user_acme"),
      url: `${builtin.service.url}/oauth`,
    };
    for (const { service } of [outside, builtin]) {
      const { page } = await startPairing(t, browser, service);
      if (service === builtin.service) await page.context().addCookies([session]);
      if (service === builtin.service) await page.reload();
      else await page.getByRole("link", { name: "Sign in to continue" }).click();
      const allow = page.getByRole("button", { name: "Allow" });
      await allow.waitFor();
      await page.evaluate("dispatchEvent(new Event('focus'))");
      await allow.click();
      await page.waitForTimeout(600);
      await allow.click();
      await page.getByRole("heading", { name: "Desktop paired" }).waitFor();
    }
  });

  await t.test("a code that is pasted at once, on the way back from the mail, is sent", async (t) => {
    const { service, inbox } = await startWithBuiltin(t);
    const page = await openPage(t, browser, service.runtime.env.LOGIN_URL);
    await page.getByLabel("Email address").fill("user_acme@example.com");
    await page.evaluate("dispatchEvent(new Event('focus'))");
    await page.keyboard.press("Enter");
    const code = page.getByLabel("Code");
    await code.fill(await eventually(() => inbox.codeFor("user_acme@example.com")));
    await page.evaluate("dispatchEvent(new Event('focus'))");
    await code.press("Enter");
    await page.getByText("You are signed in").waitFor();
  });

  await t.test("the sign-in pages are readable in the dark", async (t) => {
    const { service } = await startWithBuiltin(t);
    const page = await openPage(t, browser, service.runtime.env.LOGIN_URL, { colorScheme: "dark" });
    await picture(page, "sign-in-email-dark");
    t.same(await problems(page), []);
    await page.getByLabel("Email address").fill("user_acme@example.com");
    await page.getByRole("button", { name: "Send the code" }).click();
    await page.getByLabel("Code").waitFor();
    await picture(page, "sign-in-code-dark");
    t.same(await problems(page), []);
    await page.getByLabel("Code").fill("000000");
    await page.getByRole("button", { name: "Sign in" }).click();
    await page.getByRole("alert").waitFor();
    await picture(page, "sign-in-code-wrong-dark");
    t.same(await problems(page), []);
  });

  await t.test("an app connects in a popup, and its callback may lead on to another site of its own", async (t) => {
    const { service } = await startWithBuiltin(t);
    const app = await startApp(t, service);
    const page = await openPage(t, browser, app.url);
    const session = { name: "session", value: await service.token("user_acme"), url: `${service.url}/oauth` };
    await page.context().addCookies([session]);
    const opened = page.waitForEvent("popup");
    await page.getByRole("button", { name: "Connect" }).click();
    const popup = await opened;
    await popup.getByRole("button", { name: "Allow" }).click();
    await popup.getByText("Connected").waitFor();
    t.equal(new URL(popup.url()).hostname, "localhost");
    t.equal(await page.evaluate("popup.closed"), false, "the app still knows its popup");
    t.equal(await popup.evaluate("opener !== null"), true, "and the popup its app");
  });

  await t.test("an expired session asks to sign in again", async (t) => {
    const { service, login } = await startWithLogin(t);
    login.token = "not.a.token";
    const { client, page } = await startPairing(t, browser, service);
    await page.getByRole("link", { name: "Sign in to continue" }).click();
    await page.getByRole("button", { name: "Allow" }).click();
    await page.getByText("Your session has ended.").waitFor();
    t.ok(await page.getByRole("link", { name: "Sign in to continue" }).isVisible());
    t.match(await client.redeem(), { status: 202 });
  });
}

/** A service with an outside sign-in host that signs everyone in at once, as `user_acme` unless the test says otherwise. */
async function startWithLogin(t: Test): Promise<{ service: Service; login: { asked: string[]; token: string } }> {
  const login = { asked: [] as string[], token: "" };
  const host = createServer((request, response) => {
    const { search, searchParams } = new URL(request.url ?? "/", "http://login.test");
    if (search) login.asked.push(search);
    response.writeHead(303, { location: `${searchParams.get("returnTo")}#token=${login.token}` }).end();
  }).listen(0, "127.0.0.1");
  await once(host, "listening");
  t.teardown(() => {
    host.close();
    host.closeAllConnections();
  });
  const port = await freePort();
  const env = {
    BASE_URL: `http://127.0.0.1:${port}`,
    LOGIN_URL: `http://127.0.0.1:${(host.address() as AddressInfo).port}/`,
  };
  const service = await startService(t, { port, env });
  await service.handle("acme");
  login.token = await service.token("user_acme", { email: "user_acme@example.com" });
  return { service, login };
}

/** A service with its own sign-in and a mail server that keeps what it gets. */
async function startWithBuiltin(t: Test): Promise<{ service: Service; inbox: Inbox }> {
  const inbox = new Inbox();
  const port = await freePort();
  const env = { BASE_URL: `http://127.0.0.1:${port}`, LOGIN_BUILTIN: "1", SMTP_URL: await inbox.start(t) };
  const service = await startService(t, { port, env, workers: ["email"] });
  await service.handle("acme");
  return { service, inbox };
}

/** An MCP client on the web: its callback redirects to another origin. */
async function startApp(t: Test, service: Service): Promise<{ url: string }> {
  let authorize = "";
  const server = createServer((request, response) => {
    const { port } = server.address() as AddressInfo;
    if (request.url?.startsWith("/callback"))
      return response.writeHead(302, { location: `http://localhost:${port}/connected` }).end();
    const script = `<button onclick="popup = open('${authorize}', 'connect', 'width=500')">Connect</button>`;
    return response.setHeader("content-type", "text/html").end(request.url === "/" ? script : "Connected");
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  t.teardown(() => {
    server.close();
    server.closeAllConnections();
  });
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const redirect_uri = `${url}/callback`;
  const { body } = await service.visitor
    .post("/oauth/register")
    .send({ redirect_uris: [redirect_uri] })
    .expect(201);
  const request = {
    ...{ client_id: body.client_id, redirect_uri, response_type: "code", resource: `${service.url}/mcp/acme/mcp` },
    ...{ code_challenge: "x".repeat(43), code_challenge_method: "S256" },
  };
  authorize = `${service.url}/oauth/authorize?${new URLSearchParams(request)}`;
  return { url };
}

async function startPairing(
  t: Test,
  browser: Browser,
  service: Service,
  more: object = {},
): Promise<{ client: DesktopClient; page: Page }> {
  const client = new DesktopClient(service.url);
  const page = await openPage(t, browser, await client.start(device), more);
  return { client, page };
}

/** The findings of axe-core, and whether the page is too wide. */
async function problems(page: Page): Promise<string[]> {
  return [...(await violations(page)), ...((await fitsEverywhere(page)) ? [] : ["too wide"])];
}
