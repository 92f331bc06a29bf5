import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import type { Browser, BrowserContextOptions, Page } from "playwright-core";
import t, { type Test } from "tap";
import { settlePayment } from "../core/scheduling/booking-payments.ts";
import { bundleAssets, openPage, picture, startBrowser, violations, withoutBrowser } from "../fixtures/browser.ts";
import { openStage, type Stage } from "../fixtures/scheduling/owner.ts";
import { eventually } from "../fixtures/service.ts";

const place = "/apps/public/scheduling/acme";
const berlin: BrowserContextOptions = { locale: "en-GB", timezoneId: "Europe/Berlin" };
const phone: BrowserContextOptions = { ...berlin, viewport: { width: 360, height: 740 } };

t.test("the visitor's page", { skip: withoutBrowser }, run);

async function run(t: Test): Promise<void> {
  await bundleAssets();
  const browser = await startBrowser(t);

  await t.test("a visitor books a time in their own zone, and the address leads to the booking", async (t) => {
    const { stage, page } = await visit(t, browser);
    await page.getByRole("heading", { name: "October 2026" }).waitFor();
    // 09:00 UTC.
    await page.getByRole("button", { name: "11:00", exact: true }).waitFor();
    t.equal(await page.getByLabel("Time zone").inputValue(), "Europe/Berlin");
    t.same(await violations(page), []);
    await picture(page, "scheduling-month");
    await page.getByRole("button", { name: /\b6 October 2026/ }).click();
    await page.getByRole("button", { name: "14:30" }).click();
    await fill(page);
    t.same(await violations(page), []);
    await picture(page, "scheduling-details");
    await page.getByRole("button", { name: "Confirm booking" }).click();
    await page.getByRole("heading", { name: "You are booked" }).waitFor();
    t.same(await violations(page), []);
    await picture(page, "scheduling-booked");
    await page.emulateMedia({ media: "print" });
    for (const use of [".actions", ".calendars", ".language"]) t.notOk(await page.locator(use).isVisible(), use);
    t.ok(await page.getByText("Ada Lovelace").isVisible());
    await page.emulateMedia({ media: "screen" });
    const [booking] = await bookings(stage);
    t.match(booking, {
      start: "2026-10-06T12:30:00.000Z",
      status: "ACCEPTED",
      attendee: { name: "Ada Lovelace", email: "ada@example.com", timeZone: "Europe/Berlin" },
    });
    t.equal(new URL(page.url()).searchParams.get("booking"), booking.bookingUid);
    await page.reload();
    await page.getByRole("heading", { name: "Your booking" }).waitFor();
    t.ok(await page.getByText(/14:30\s?–\s?15:00/).isVisible());
  });

  await t.test("a time that is taken before the click is reported, and the entries stay", async (t) => {
    const { stage, page } = await visit(t, browser);
    await page.getByRole("button", { name: "11:00", exact: true }).click();
    await fill(page);
    await page.getByRole("button", { name: "Add a guest" }).click();
    await page.getByLabel("Email of guest 1").fill("bob@example.com");
    await stage
      .book("intro", "2026-10-05T09:00:00Z", 30, { attendee: { name: "Eve", email: "eve@example.com" } })
      .expect(201);
    await page.getByRole("button", { name: "Confirm booking" }).click();
    await page.getByRole("alert").getByText("This time was just taken").waitFor();
    await page.getByRole("button", { name: "11:30", exact: true }).waitFor();
    t.equal(await page.getByRole("button", { name: "11:00", exact: true }).count(), 0, "the times are fresh");
    t.same(await violations(page), []);
    await picture(page, "scheduling-taken");
    await page.getByRole("button", { name: "11:30", exact: true }).click();
    t.equal(await page.getByLabel("Name").inputValue(), "Ada Lovelace");
    await page.getByRole("button", { name: "Confirm booking" }).click();
    await page.getByRole("heading", { name: "You are booked" }).waitFor();
    const mine = (await bookings(stage)).find(({ attendee }) => attendee.email === "ada@example.com");
    t.match(mine, { start: "2026-10-05T09:30:00.000Z", guests: [{ email: "bob@example.com" }] });
  });

  await t.test("a reload keeps the step and what was typed, until it is booked", async (t) => {
    const { stage, page } = await visit(t, browser);
    await page.goto(`${page.url()}?name=Eve`);
    await page.getByRole("button", { name: "11:30", exact: true }).click();
    t.equal(await page.getByLabel("Name").inputValue(), "Eve");
    await fill(page);
    for (const guest of [1, 2]) {
      await page.getByRole("button", { name: "Add a guest" }).click();
      await page.getByLabel(`Email of guest ${guest}`).fill(`guest${guest}@example.com`);
    }
    await page.getByRole("button", { name: "Remove guest 1" }).click();
    await page.reload();
    await page.getByRole("heading", { name: "Your details" }).waitFor();
    t.equal(await page.getByLabel("Name").inputValue(), "Ada Lovelace");
    await page.goBack();
    await page.getByRole("heading", { name: "Choose a day" }).waitFor();
    await page.goForward();
    await page.getByRole("button", { name: "Confirm booking" }).click();
    await page.getByRole("heading", { name: "You are booked" }).waitFor();
    t.match(await bookings(stage), [
      {
        start: "2026-10-05T09:30:00.000Z",
        attendee: { email: "ada@example.com" },
        guests: [{ email: "guest2@example.com" }],
      },
    ]);
    await page.getByRole("button", { name: "Cancel booking" }).click();
    await page.getByRole("button", { name: "Cancel booking" }).click();
    await page.getByRole("button", { name: "Book another time" }).click();
    await page.getByRole("button", { name: "11:00", exact: true }).waitFor();
    await page.reload();
    await page.goBack();
    await page.getByRole("heading", { name: "This booking is cancelled" }).waitFor();
    await page.goto(`${stage.service.url}${place}/intro`);
    await page.getByRole("button", { name: "11:00", exact: true }).click();
    t.equal(await page.getByLabel("Name").inputValue(), "");
  });

  await t.test("a cancellation that gets no reply says nothing of booking, and can be repeated", async (t) => {
    const { stage, page } = await manage(t, browser);
    await page.route("**/cancel", async (route) => {
      await route.fetch();
      await route.abort();
    });
    await page.getByRole("button", { name: "Cancel booking" }).click();
    await page.getByRole("button", { name: "Cancel booking" }).click();
    const alert = page.getByRole("alert").getByText("The service can’t be reached.");
    await alert.waitFor();
    t.notMatch(await alert.textContent(), "book");
    await page.unroute("**/cancel");
    await page.getByRole("button", { name: "Cancel booking" }).click();
    await page.getByRole("heading", { name: "This booking is cancelled" }).waitFor();
    t.match(await bookings(stage), [{ status: "CANCELLED" }]);
  });

  await t.test("without JavaScript a booking is seen and cancelled", async (t) => {
    const bookingFields = [{ id: "topic", label: "What is it about?", type: "text", required: true }];
    const { stage, page } = await visit(t, browser, {
      event: { bookingFields },
      context: { ...phone, javaScriptEnabled: false },
    });
    const shown = page.locator("main");
    t.match(await shown.textContent(), "This page needs JavaScript");
    const made = await stage.book("intro", "2026-10-05T09:00:00Z", 30, {
      attendee: { name: "Ada", email: "ada@example.com", timeZone: "Europe/Berlin" },
      answers: { topic: "A <new> bike" },
    });
    await page.goto(`${stage.service.url}${place}/intro?booking=${made.body.bookingUid}`);
    t.match(
      await shown.textContent(),
      /Your booking.*5 October 2026 at 11:00 CEST \(Europe\/Berlin\), 30 minutes.*A <new> bike/s,
    );
    t.ok(await fits(page));
    await picture(page, "scheduling-without-script");
    await page.locator("main textarea").fill("I am ill");
    await page.locator("main button").click();
    await page.locator("xpath=//h2[contains(., 'is cancelled')]").waitFor();
    t.equal(await page.locator("button").count(), 0);
    t.match(await bookings(stage), [{ status: "CANCELLED", cancelledBy: "visitor", cancellationReason: "I am ill" }]);
  });

  await t.test("without JavaScript the chosen language stays after a cancellation", async (t) => {
    const { stage, page } = await visit(t, browser, { context: { javaScriptEnabled: false } });
    const made = await stage.book("intro", "2026-10-05T09:00:00Z", 30);
    await page.goto(`${stage.service.url}${place}/intro?booking=${made.body.bookingUid}&language=de`);
    await page.locator("main button").click();
    await page.locator("xpath=//h2[contains(., 'abgesagt')]").waitFor();
  });

  await t.test("hasty clicks and lost answers make one booking", async (t) => {
    const { stage, page } = await visit(t, browser);
    await page.getByRole("button", { name: "11:00", exact: true }).click();
    await fill(page);
    const keys: (string | undefined)[] = [];
    await page.route("**/bookings", async (route) => {
      keys.push(route.request().headers()["idempotency-key"]);
      await route.fetch();
      await (keys.length === 1 ? route.abort() : route.fallback());
    });
    await page.evaluate(() => {
      for (let times = 0; times < 3; times++) document.querySelector("form")?.requestSubmit();
    });
    await page
      .getByRole("alert")
      .getByText(/The service can’t be reached.* You won’t book twice\.$/)
      .waitFor();
    t.equal(keys.length, 1, "while one is on its way no other is sent");
    await picture(page, "scheduling-offline");
    await page.getByRole("button", { name: "Confirm booking" }).click();
    await page.getByRole("heading", { name: "You are booked" }).waitFor();
    t.equal(new Set(keys).size, 1);
    t.equal((await bookings(stage)).length, 1);
  });

  await t.test("a booking is moved, keeps its uid, and is cancelled with a reason", async (t) => {
    const { stage, page, uid } = await manage(t, browser);
    t.same(await violations(page), []);
    await picture(page, "scheduling-manage");
    const file = await stage.service.visitor.get(
      (await page.getByRole("link", { name: "File (.ics)" }).getAttribute("href")) ?? "",
    );
    t.match(file.text, "BEGIN:VCALENDAR");
    await page.getByRole("button", { name: "Reschedule" }).click();
    await page.getByRole("heading", { name: "Choose a new time" }).waitFor();
    await page.getByRole("button", { name: "12:00", exact: true }).click();
    t.same(await violations(page), []);
    await picture(page, "scheduling-move");
    await page.getByLabel("Reason").fill("A train is late");
    await page.getByRole("button", { name: "Reschedule booking" }).click();
    await page.getByRole("heading", { name: "Your booking was rescheduled" }).waitFor();
    t.match(await bookings(stage), [
      { bookingUid: uid, start: "2026-10-05T10:00:00.000Z", sequence: 1, reschedulingReason: "A train is late" },
    ]);
    await page.getByRole("button", { name: "Cancel booking" }).click();
    t.same(await violations(page), []);
    await picture(page, "scheduling-cancel");
    await page.getByRole("button", { name: "Keep it" }).click();
    t.equal(await focused(page), "Cancel booking");
    await page.getByRole("button", { name: "Cancel booking" }).click();
    await page.getByLabel("Reason").fill("No need any more");
    await page.getByRole("button", { name: "Cancel booking" }).click();
    await page.getByRole("heading", { name: "This booking is cancelled" }).waitFor();
    t.match(await bookings(stage), [
      { status: "CANCELLED", cancelledBy: "visitor", cancellationReason: "No need any more" },
    ]);
    await picture(page, "scheduling-cancelled");
    await page.getByRole("button", { name: "Book another time" }).click();
    await page.getByRole("button", { name: "11:00", exact: true }).waitFor();
    t.equal(new URL(page.url()).search, "");
  });

  await t.test(
    "a cancelled booking shows no reason of an earlier move, and Back doesn't offer to move it",
    async (t) => {
      const { page } = await manage(t, browser);
      await page.getByRole("button", { name: "Reschedule" }).click();
      await page.getByRole("button", { name: "12:00", exact: true }).click();
      await page.getByLabel("Reason").fill("A train is late");
      await page.getByRole("button", { name: "Reschedule booking" }).click();
      await page.getByText("A train is late").waitFor();
      await page.getByRole("button", { name: "Cancel booking" }).click();
      await page.getByRole("button", { name: "Cancel booking" }).click();
      await page.getByRole("heading", { name: "This booking is cancelled" }).waitFor();
      t.equal(await page.getByText("A train is late").count(), 0);
      // The listener is there before the way back, which a busy renderer may otherwise take first.
      await page.evaluate("addEventListener('popstate', () => document.body.classList.add('back'))");
      await page.goBack();
      await page.locator(".back").waitFor();
      t.ok(await page.getByRole("heading", { name: "This booking is cancelled" }).isVisible());
    },
  );

  await t.test("the keyboard alone books", async (t) => {
    const { stage, page } = await visit(t, browser);
    const day = page.getByRole("button", { name: /\b5 October 2026/ });
    await day.waitFor();
    await day.focus();
    for (const key of ["ArrowRight", "ArrowDown", "End", "Home", "ArrowLeft"]) await page.keyboard.press(key);
    t.match(await focused(page), "11", "a day on, a week on, Sunday, Monday, and back over the week's edge");
    await page.keyboard.press("PageDown");
    await page.getByRole("heading", { name: "November 2026" }).waitFor();
    t.match(await focused(page), "11", "the same date of the next month");
    await page.getByRole("button", { name: /\b11 November 2026.*free times/ }).waitFor();
    await page.keyboard.press("PageUp");
    await page.getByRole("heading", { name: "October 2026" }).waitFor();
    await page.keyboard.press("Enter");
    await press(page, "Tab", (text) => text === "11:00");
    await page.keyboard.press("Enter");
    t.equal(await focused(page), "Your details");
    await page.keyboard.press("Tab");
    await page.keyboard.type("Ada Lovelace");
    await page.keyboard.press("Enter");
    await page.getByText("Please fill this in.").waitFor();
    const email = page.getByLabel("Email", { exact: true });
    t.ok(await email.evaluate((input) => input === document.activeElement), "the focus is where something is wrong");
    t.equal(await email.getAttribute("aria-invalid"), "true");
    t.equal(
      await email.evaluate(
        (input) => document.getElementById(input.getAttribute("aria-describedby") ?? "")?.textContent,
      ),
      "Please fill this in.",
    );
    t.same(await violations(page), []);
    await page.keyboard.type("ada@example.com");
    await page.keyboard.press("Enter");
    await page.getByRole("heading", { name: "You are booked" }).waitFor();
    t.equal(await focused(page), "You are booked");
    t.match(await bookings(stage), [{ start: "2026-10-11T09:00:00.000Z" }]);
  });

  await t.test(
    "the focus stays where it was while times are loaded again, and on the way on after a failure",
    async (t) => {
      const { page } = await visit(t, browser);
      await page.getByRole("button", { name: "11:30", exact: true }).focus();
      await page.clock.install();
      const reload = async (): Promise<void> => {
        await page.clock.fastForward(31_000);
        const reloaded = page.waitForResponse(/\/slots\?/);
        await page.evaluate(() => dispatchEvent(new Event("online")));
        await reloaded;
        await page.locator(".month:not(.loading)").waitFor();
      };
      await reload();
      t.equal(await focused(page), "11:30");
      await page.evaluate(() => (document.activeElement as HTMLElement).blur());
      await reload();
      t.ok(await page.evaluate(() => document.activeElement === document.body), "a focus that was left stays away");
      await page.route(/\/slots\?/, (route) => route.abort());
      await page.getByRole("button", { name: "Next month" }).press("Enter");
      const retry = page.getByRole("button", { name: "Try again" });
      await retry.press("Enter");
      await eventually(async () => (await focused(page)) === "Try again");
      t.ok(await retry.isVisible());
      await page.unroute(/\/slots\?/);
      await retry.press("Enter");
      await page.locator(".month:not(.loading)").waitFor();
      await eventually(async () => (await focused(page)) === "1");
    },
  );

  await t.test("a booking that has ended in another tab is shown as it is, not called unchangeable", async (t) => {
    const { stage, page, uid } = await manage(t, browser);
    await page.getByRole("button", { name: "Reschedule" }).click();
    await page.getByRole("button", { name: "12:00", exact: true }).click();
    await stage.service.visitor.post(`/v2/public/scheduling/acme/intro/bookings/${uid}/cancel`).send({}).expect(200);
    await page.getByRole("button", { name: "Reschedule booking" }).click();
    await page.getByRole("heading", { name: "This booking is cancelled" }).waitFor();
    await page.getByRole("button", { name: "Book another time" }).waitFor();
  });

  await t.test("every kind of question is asked, checked and sent", async (t) => {
    const { stage, page } = await visit(t, browser, {
      event: { bookingFields: questions, locations: places },
      context: phone,
    });
    await page.getByRole("button", { name: "11:00", exact: true }).waitFor();
    t.ok(await fits(page), "the month fits a narrow phone");
    t.same(await violations(page), []);
    await picture(page, "scheduling-phone");
    await page.getByRole("button", { name: "11:00", exact: true }).click();
    await fill(page);
    await page.getByRole("button", { name: "Confirm booking" }).click();
    await page.getByText("Please tick this box.").waitFor();
    t.equal(await page.locator(".fault:visible").count(), 8);
    t.same(await violations(page), []);
    await picture(page, "scheduling-errors");
    await page.getByLabel("By phone").check();
    for (const [label, text] of typed) await page.getByLabel(label).fill(text);
    await page.getByLabel("Team").selectOption("Design");
    await page.getByLabel("Large").check();
    await page.getByRole("radio", { name: "No" }).check();
    await page.getByLabel("Terms").check();
    await page.getByRole("button", { name: "Confirm booking" }).click();
    await page.getByText("This is not an email address.").waitFor();
    await page.getByLabel("Second email").fill("second@example.com");
    t.ok(await fits(page), "nothing is wider than a narrow phone");
    await page.getByRole("button", { name: "Confirm booking" }).click();
    await page.getByRole("heading", { name: "You are booked" }).waitFor();
    t.equal(await page.getByText("No mail will be sent.").count(), 1, "since there is no sender");
    await picture(page, "scheduling-phone-booked");
    const [booking] = await bookings(stage);
    t.match(booking.location, { type: "phone" });
    t.same(booking.answers, {
      topic: "Kitchens",
      more: "Two\nlines",
      second: "second@example.com",
      call: "+49 30 1234567",
      size: "12.5",
      team: "Design",
      shape: "Large",
      first: "false",
      terms: "true",
      site: "https://example.com/plan",
    });
  });

  await t.test("a paid booking leads to its payment, and the page notices when it has arrived", async (t) => {
    const { stage, page } = await visit(t, browser, {
      event: { payment: { enabled: true, amountMinor: 2500, currency: "EUR", refundUntilMinutes: 60 } },
    });
    const checkout = `${stage.service.url}/healthz`;
    const payments = { accountStatus: async () => "OK", openCheckout: async () => ({ url: checkout }) };
    const unpayable = page.getByRole("alert").getByText("Payment isn’t possible at the moment");
    await unpayable.waitFor();
    Object.assign(stage.service.runtime, { payments });
    await page.reload();
    await page.getByRole("button", { name: "11:00", exact: true }).click();
    t.equal(await unpayable.count(), 0);
    await fill(page);
    await page.getByRole("button", { name: "Continue to payment" }).click();
    await page.waitForURL(checkout);
    await page.goBack();
    await page.getByRole("heading", { name: "Waiting for your payment" }).waitFor();
    t.equal(await page.getByRole("link", { name: "Pay €25.00" }).getAttribute("href"), checkout);
    t.same(await violations(page), []);
    await picture(page, "scheduling-unpaid");
    const [{ bookingUid }] = await bookings(stage);
    const paid = await openPage(t, browser, `${page.url()}&paid=1`);
    await paid.getByRole("heading", { name: "Waiting for your payment" }).waitFor();
    t.equal(await paid.getByRole("link", { name: "Pay €25.00" }).count(), 0, "a payer isn't asked to pay again");
    await paid.reload();
    await paid.getByRole("link", { name: "Pay €25.00" }).waitFor();
    await settlePayment(stage.service.runtime, { handle: "acme", bookingUid });
    await page.getByRole("heading", { name: "You are booked" }).waitFor();
    t.pass("without a click");
    await page.getByRole("button", { name: "Cancel booking" }).click();
    await page.getByText("You will be refunded €25.00.").waitFor();
    stage.at("2026-10-05T08:30:00Z");
    await page.reload();
    await page.getByRole("button", { name: "Cancel booking" }).click();
    await page.getByText(/€25\.00 will not be refunded: refunds were possible until .*\d\d:00\./).waitFor();
  });

  await t.test("in dark mode, in another zone and language, with the visitor's choice of clock", async (t) => {
    const context = { locale: "de-DE", timezoneId: "America/New_York", colorScheme: "dark" as const };
    const { page } = await visit(t, browser, { context, event: { confirmationRequired: true } });
    await page.getByRole("heading", { name: "Oktober 2026" }).waitFor();
    t.equal(await page.locator("html").getAttribute("lang"), "de");
    await page.getByRole("button", { name: "05:00", exact: true }).waitFor();
    await page.getByLabel("12 Std.").check({ force: true });
    await page.getByRole("button", { name: /^5:00\sAM$/ }).waitFor();
    await page.getByLabel("Zeitzone").focus();
    await page.getByLabel("Zeitzone").selectOption("Asia/Tokyo");
    await page.getByRole("button", { name: /^6:00\sPM$/ }).waitFor();
    t.same(await violations(page), []);
    await picture(page, "scheduling-dark");
    await page.getByRole("button", { name: /^6:00\sPM$/ }).click();
    t.ok(await page.getByRole("button", { name: "Termin anfragen" }).isVisible());
  });

  await t.test("a month without a free time says so and leads to the next one", async (t) => {
    const weeks = { bookingWindowDays: 3000, minimumNoticeMinutes: 200 * 24 * 60 };
    const { page } = await visit(t, browser, { event: weeks });
    await page.getByText("There are no free times in October 2026.").waitFor();
    await picture(page, "scheduling-empty");
    await page.getByRole("button", { name: "Find the next free time" }).press("Enter");
    t.equal(await focused(page), "Looking for free times…");
    await page.getByRole("heading", { name: "April 2027" }).waitFor();
    t.ok(await page.getByRole("button", { name: "11:00", exact: true }).isVisible());
  });

  await t.test(
    "hidden and unknown events are the same page; a booking of a hidden one can be read and cancelled",
    async (t) => {
      const { stage, page, uid, eventTypeId } = await manage(t, browser);
      await stage.owner
        .put(`/v2/handles/acme/scheduling/event-types/${eventTypeId}`)
        .send({ hidden: true })
        .expect(200);
      const [hidden, unknown] = await Promise.all(
        ["intro", "nothing"].map((slug) => stage.service.visitor.get(`${place}/${slug}`)),
      );
      t.equal(hidden?.status, 404);
      t.equal(hidden?.text, unknown?.text);
      t.match(hidden?.headers["content-security-policy"], "default-src 'none'");
      t.match(hidden?.text, `href="${place}"`, "a way on");
      t.notMatch((await stage.service.visitor.get(`${place}/nothing?embed=1`)).text, 'href="/apps');
      t.equal((await stage.service.visitor.get(`${place}/intro?booking=nothing`)).status, 404);
      await page.goto(`${stage.service.url}${place}/intro?booking=${uid}`);
      await page.getByRole("button", { name: "Cancel booking" }).waitFor();
      t.equal(await page.getByRole("button", { name: "Reschedule" }).count(), 0);
      await page.goto(`${stage.service.url}${place}/intro`);
      t.same(await violations(page), []);
      const [text, button] = await Promise.all(
        [".plain p", ".plain .button"].map((one) => page.locator(one).first().boundingBox()),
      );
      t.ok(button!.y - (text!.y + text!.height) >= 12, "the button keeps its distance");
      await picture(page, "scheduling-missing");
    },
  );

  await t.test("inside another page the frame grows with its content, and other pages can't be framed", async (t) => {
    const { stage, page } = await visit(t, browser);
    const { url } = stage.service;
    t.match(
      (await stage.service.visitor.get(`${place}/intro`)).headers["content-security-policy"],
      "frame-ancestors 'none'",
    );
    const host = createServer((_, answer) =>
      answer
        .setHeader("content-type", "text/html")
        .end(
          `<title>Host</title><div data-svc-scheduling="acme/intro"></div>\n<script async src="${url}/assets/scheduling-embed.js"></script>`,
        ),
    ).listen(0, "127.0.0.1");
    t.teardown(() => host.close());
    await once(host, "listening");
    await page.goto(`http://127.0.0.1:${(host.address() as AddressInfo).port}/`);
    const frame = page.frameLocator("iframe");
    await frame.getByRole("button", { name: "11:00", exact: true }).click();
    await frame.getByLabel("Name").waitFor();
    const height = (): Promise<number> => page.locator("iframe").evaluate((one) => one.clientHeight);
    const small = await eventually(async () => (await height()) !== 720 && height());
    await page.evaluate(() => postMessage({ type: "svc-scheduling-size", height: 3999 }, "*"));
    for (let guests = 0; guests < 4; guests++) await frame.getByRole("button", { name: "Add a guest" }).click();
    const large = await eventually(async () => (await height()) > small && height());
    t.ok(large < 3000, "and no other window decides how tall it is");
    await picture(page, "scheduling-embedded");
  });

  await t.test("a frame shows the address of a booking that no mail has", async (t) => {
    const { stage, page, uid } = await manage(t, browser);
    const own = `${stage.service.url}${place}/intro?booking=${uid}`;
    await page.goto(`${own}&embed=1`);
    await page.getByRole("link", { name: own, exact: true }).waitFor();
    t.same(await violations(page), []);
    await page.goto(own);
    await page.getByRole("button", { name: "Cancel booking" }).waitFor();
    t.equal(await page.getByText(own).count(), 0);
  });

  await t.test("a handle's events are a list of links", async (t) => {
    const { stage, page } = await visit(t, browser, {
      event: { description: "Half an hour to get to know each other." },
    });
    await page.goto(`${stage.service.url}${place}`);
    t.same(await violations(page), []);
    await picture(page, "scheduling-list");
    await page.getByRole("link", { name: "Introduction" }).click();
    await page.getByRole("button", { name: "11:00", exact: true }).waitFor();
    t.equal((await stage.service.visitor.get("/apps/public/scheduling/nobody")).status, 404);
  });
}

const places = [
  { type: "in_person", label: "Main street 1, Berlin" },
  { type: "phone", label: "" },
];
const required = true;
const questions = [
  { id: "topic", label: "Topic", type: "text", required },
  { id: "more", label: "Anything else", type: "text-area" },
  { id: "second", label: "Second email", type: "email" },
  { id: "call", label: "Number to call", type: "phone", required },
  { id: "size", label: "Size in m²", type: "number", required },
  { id: "team", label: "Team", type: "select", options: ["Design", "Sales"], required },
  { id: "shape", label: "Shape", type: "radio", options: ["Small", "Large"], required },
  { id: "first", label: "Been here before?", type: "boolean", required },
  { id: "terms", label: "Terms", type: "checkbox", required },
  { id: "site", label: "Address of the plan", type: "url", required },
];
const typed = [
  ["Topic", "Kitchens"],
  ["Anything else", "Two\nlines"],
  ["Second email", "second"],
  ["Number to call", "\u202a+49 ٣٠ 1234567\u202c"],
  ["Size in m²", "１２,5"],
  ["Address of the plan", "https://example.com/plan"],
] as const;

/** The page of the event type `intro`, with more fields where asked. */
async function visit(
  t: Test,
  browser: Browser,
  more: { event?: Record<string, unknown>; context?: BrowserContextOptions } = {},
): Promise<{ stage: Stage; page: Page; eventTypeId: string }> {
  const stage = await openStage(t);
  const eventTypeId = await stage.event({ slug: "intro", title: "Introduction", ...more.event });
  const page = await openPage(t, browser, `${stage.service.url}${place}/intro`, more.context ?? berlin);
  page.setDefaultTimeout(10_000);
  return { stage, page, eventTypeId };
}

/** The page of a booking that was made for 11:00 in Berlin. */
async function manage(
  t: Test,
  browser: Browser,
): Promise<{ stage: Stage; page: Page; uid: string; eventTypeId: string }> {
  const { stage, page, eventTypeId } = await visit(t, browser);
  const made = await stage.book("intro", "2026-10-05T09:00:00Z", 30).expect(201);
  const uid = made.body.bookingUid as string;
  await page.goto(`${stage.service.url}${place}/intro?booking=${uid}`);
  await page.getByRole("heading", { name: "Your booking" }).waitFor();
  return { stage, page, uid, eventTypeId };
}

/** Presses a key until the focus is where it should be. */
async function press(page: Page, key: string, is: (text: string) => boolean): Promise<void> {
  for (let times = 0; times < 30 && !is(await focused(page)); times++) await page.keyboard.press(key);
}

function focused(page: Page): Promise<string> {
  return page.evaluate(() => document.activeElement?.textContent ?? "");
}

function fits(page: Page): Promise<boolean> {
  return page.evaluate(() => document.documentElement.scrollWidth <= innerWidth);
}

async function fill(page: Page): Promise<void> {
  await page.getByLabel("Name").fill("Ada Lovelace");
  await page.getByLabel("Email", { exact: true }).fill("ada@example.com");
}

// biome-ignore lint/suspicious/noExplicitAny: what the service answers
async function bookings({ owner }: Stage): Promise<any[]> {
  return (await owner.get("/v2/handles/acme/scheduling/bookings").expect(200)).body.bookings;
}
