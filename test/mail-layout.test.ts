import t from "tap";
import { layOut, type MailLayout } from "../core/engines/mail/mail.ts";
import { startBrowser, withoutBrowser } from "../fixtures/browser.ts";

const layout: MailLayout = {
  language: "de-AT",
  subject: "Bestätigt:\r\nBcc: all@example.com <b>",
  sender: "Müller & Söhne",
  title: "Ihr Termin ist bestätigt.",
  code: "012345",
  paragraphs: ["Eine Zeile\nund <noch> eine"],
  facts: [
    ["Was", 'Beratung "kurz"'],
    ["Worum geht es?", "Um alles"],
    ["Wo", "https://meet.example/1", "https://meet.example/1"],
    ["Seite", "Preise", "https://acme.example/preise"],
    ["E-Mail", "ada@example.com", "mailto:ada%40example.com"],
  ],
  actions: [["Öffnen", "https://acme.example/?a=1&b=2"]],
  footer: "Warum Sie diese E-Mail erhalten.",
};

t.test("a mail is the same as text and as HTML, and no value becomes markup or a header", async (t) => {
  const { subject, text, html } = layOut(layout);
  t.equal(subject, "Bestätigt: Bcc: all@example.com <b>");
  t.equal(
    text,
    [
      "Ihr Termin ist bestätigt.\n\n    012345\n\nEine Zeile\nund <noch> eine\n",
      'Was: Beratung "kurz"\nWorum geht es? Um alles\nWo: https://meet.example/1\nSeite: Preise\nhttps://acme.example/preise',
      "E-Mail: ada@example.com\n\nÖffnen:\nhttps://acme.example/?a=1&b=2\n",
      "-- \nMüller & Söhne\nWarum Sie diese E-Mail erhalten.\n",
    ].join("\n"),
  );
  t.match(html, '<html lang="de-AT" dir="ltr">');
  t.match(html, "Eine Zeile<br>und &lt;noch&gt; eine");
  t.match(html, 'href="https://acme.example/?a=1&amp;b=2"');
  t.match(html, "Beratung &quot;kurz&quot;");
  t.notMatch(html, /<noch>|<b>/);
  t.match(html, '<meta name="color-scheme" content="light dark">');
});

t.test("no visitor's value hides, turns round or forges another line of a mail", async (t) => {
  const value = "Eve\u202e\u0000\u001b[31m\r\nE-Mail: boss@acme.example\r-- \u2028Öffnen:\nhttps://evil.example";
  const { subject, text, html } = layOut({ ...layout, subject: `Neu: ${value}`, facts: [["Name", value]] });
  t.equal(subject, "Neu: Eve[31m E-Mail: boss@acme.example -- Öffnen: https://evil.example");
  const lines =
    "Name: Eve[31m\n    E-Mail: boss@acme.example\n    -- \n    Öffnen:\n    https://evil.example\n\nÖffnen:\n";
  t.ok(text.includes(lines), text);
  t.notMatch(`${text}${html}`, /(?!\n)[\p{Cc}\u202e]/u);
  const persian = "می\u200cخواهم";
  t.match(layOut({ ...layout, facts: [["Name", persian]] }).text, persian, "a joiner with a meaning stays");
});

t.test("a mail in a language that is written from right to left is laid out so", async (t) => {
  const { html } = layOut({ ...layout, language: "ar" });
  t.match(html, '<html lang="ar" dir="rtl">');
  t.match(html, /class="card" style="[^"]*text-align:right"/);
  t.match(html, 'align="right"');
  t.match(layOut({ ...layout, sender: "شركة" }).html, /class="card" style="[^"]*text-align:left"/);
});

t.test("on a phone the name of a fact has the whole width", { skip: withoutBrowser }, async (t) => {
  const browser = await startBrowser(t);
  const page = await browser.newPage({ viewport: { width: 375, height: 700 } });
  await page.setContent(layOut({ ...layout, facts: [["What would you like to talk about?", "Bikes"]] }).html);
  const lines = page.locator("th").evaluate((name) => name.getBoundingClientRect().height / 24);
  t.equal(Math.round(await lines), 1);
});
