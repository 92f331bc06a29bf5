import { readFileSync } from "node:fs";
import process from "node:process";
import t, { type Test } from "tap";
import {
  figuresBeyond,
  Grounding,
  type Library,
  type Link,
  type Passage,
  passagesFor,
  readQuestion,
  replyTo,
} from "../core/engines/answers/answers.ts";
import { documentSource, libraryFrom, pageSource } from "../fixtures/assistant/libraries.ts";

const library = libraryFrom([
  pageSource(
    "<h2>Plans</h2><p>The Team plan costs $9 per person. Setup is 1,000 €. You save 10 % with the code SAVE20. The warranty is two years.</p>" +
      '<h2>Contact</h2><p>Mail hi@acme.example, call +49 30 1234567 or visit <a href="https://acme.example/demo">the demo</a>. Open 9:00 to 17:00.</p>',
  ),
  documentSource(
    "## Hire\n\n| | 1 day | 3 days |\n|---|---|---|\n| Road bike | £26 | £66 |\n| E-bike | £45 | £119 |\n\nDogs are not allowed in the shop.\n\n" +
      "## Ages\n\nRiders must be 14 or over on multi-day tours and 10 or over on day tours.\n\n## Not included\n\n- Dinners\n- Insurance\n\n" +
      "## Termine\n\nDer Kurs beginnt am 16. April 2027 um 18 Uhr.",
    { title: "Terms" },
  ),
]);
const passages = allOf(library);
const numberOf = (part: string) => passages.findIndex(({ text }) => text.includes(part)) + 1;

const courses = libraryFrom([
  documentSource(
    "## Courses\n\n| Course | When | Weeks | Price |\n|---|---|---|---|\n| Wheel for beginners | Tuesday 7pm | 10 | £295 |\n" +
      "| Handbuilding | Wednesday 6pm | 6 | £168 |\n\n| Workshop | Adult | Under 16 | When |\n|---|---|---|---|\n" +
      "| Pinch & Coil | £38 | £24 | second Friday, 4pm |\n| First Spin | £45 | £30 | Saturday, 10am |\n\n" +
      "| | Pencil | Pen | Fountain pen |\n|---|---|---|---|\n| Users | 1 | 2 | 8 |\n\nThe studio is open to all who had an induction " +
      "(45 minutes, £40, once).\n\n## Parking\n\nThe car park costs £2 an hour. Our tutor Owen Fairbrother lives next door.\n\n" +
      "## Vouchers\n\nVouchers can be for any amount.\n\n- good for courses\n- not for memberships\n\n" +
      "## Repairs\n\nA road bike is mended for £30, an e-bike for £45.\n\n" +
      "## Can we bring our own cake?\n\nNo. We bake it here.\n\n## Bread\n\nYou may bring bread, without charge.",
    { title: "Studio" },
  ),
]);

function allOf(from: Library): Passage[] {
  return passagesFor(from, readQuestion("What?", "en"), { budget: 100_000, costOf: (text) => text.length });
}

interface Passed {
  text: string;
  dropped: number;
  kept: number;
  used: string[];
}

/** The text that passes, and the number of dropped sentences, if a text arrives in pieces of a size. */
function filtered(
  text: string,
  size = 7,
  more: { never?: string[]; links?: Link[]; language?: string; from?: Library } = {},
): Passed {
  const { never = [], links = [], language = "en", from = library } = more;
  const filter = new Grounding(from, from === library ? passages : allOf(from), { language, never, links });
  let passed = "";
  for (let at = 0; at < text.length; at += size) passed += filter.push(text.slice(at, at + size));
  passed += filter.end();
  return { text: passed, dropped: filter.dropped, kept: filter.kept, used: filter.used.map((unit) => unit.text) };
}

const passes = (t: Test, sentences: string[], from = library) => {
  for (const sentence of sentences)
    t.match(filtered(sentence, 7, { from }), { text: sentence, dropped: 0, kept: 1 }, sentence);
};
const goes = (t: Test, sentences: string[], from = library) => {
  for (const sentence of sentences)
    t.match(filtered(sentence, 7, { from }), { text: "", dropped: 1, kept: 0 }, sentence);
};

t.test("a sentence passes if its figures are in the text, in any form", async (t) => {
  passes(t, [
    "The Team plan costs **$9**.",
    "The Team plan is 9 USD per person.",
    "Setup is €1000.",
    "Setup is 1.000 Euro.",
    "Setup is a thousand euros.",
    "Write to HI@acme.example.",
    "Call +49 30 123 45 67.",
    "See [the demo](https://acme.example/demo).",
    "See acme.example/demo for more.",
    "We are open until 5 pm.",
    "You save 10 percent.",
    "The warranty is 2 years.",
    "Use the code save20 to save 10 %.",
    "See https://acme.example/pricing.",
    "An e-bike costs £45 for one day and £119 for three days.",
    "Riders must be at least 14 on multi-day tours and at least 10 on day tours.",
    "Dinners are not included.",
    "Dogs can't come into the shop; they are not allowed.",
  ]);
});

t.test("the mark of a footnote is no digit of a figure", async (t) => {
  const from = libraryFrom([pageSource("<p>A swim costs £48<sup>1</sup>, a towel £2¹.</p>")]);
  passes(t, ["A swim costs £48.", "A towel costs £2."], from);
  goes(t, ["A swim costs £481.", "A towel costs £21."], from);
});

t.test("three decimals after a thousands separator are decimals", async (t) => {
  for (const written of ["1,234.567", "1.234,567"]) {
    const from = libraryFrom([documentSource(`## Bridge\n\nThe bridge is ${written} m long.`)]);
    passes(t, ["The bridge is 1234.567 m long."], from);
    goes(t, ["The bridge is 1234567 m long."], from);
  }
});

t.test("a table of prices without VAT says its prices, and one of what is not included no inclusion", async (t) => {
  const table = (caption: string) =>
    libraryFrom([
      pageSource(
        `<h2>Rooms</h2><table><caption>${caption}</caption><tr><th>Room</th><th>A day</th></tr><tr><td>Attic</td><td>£90</td></tr></table>`,
      ),
    ]);
  for (const caption of ["Prices exclude VAT", "All prices, VAT not included", "Prices excluding 20 % VAT"])
    passes(t, ["The attic costs £90 a day.", "The attic costs £90 a day plus VAT."], table(caption));
  goes(t, ["The attic costs £90 including VAT.", "The attic costs £90 with VAT."], table("Prices exclude VAT"));
  goes(t, ["The attic is included."], table("Not included"));
  goes(t, ["The attic is included."], table("Breakfast and tourist tax are not included"));
});

t.test("two things of which one clause says that they are not included are both not", async (t) => {
  const from = libraryFrom([
    pageSource(
      "<h2>Extras</h2><p>Towels and breakfast are not included.</p><p>Linen is included, cots are not included.</p>",
    ),
  ]);
  passes(t, ["Breakfast is not included.", "Linen is included."], from);
  goes(t, ["Towels are included.", "Breakfast is included.", "Cots are included."], from);
});

t.test("a bound is an end of a span in words", async (t) => {
  const from = libraryFrom([
    pageSource("<h2>Freezing</h2><p>Freeze your membership for one to three months, and have 20 minutes to pay.</p>"),
  ]);
  passes(t, ["Freeze your membership for up to three months."], from);
  passes(t, ["Freeze your membership for at least one month."], from);
  const others = ["at least three months", "at most one month", "up to four months"];
  goes(
    t,
    [...others.map((span) => `Freeze your membership for ${span}.`), "You have at least 20 minutes to pay."],
    from,
  );
});

t.test("a limit is an upper bound", async (t) => {
  const from = libraryFrom([
    documentSource("## Uploads\n\n| What | Limit |\n| --- | --- |\n| Size of a film | 5 MB |"),
  ]);
  passes(t, ["A film may be at most 5 MB."], from);
  goes(t, ["A film must be at least 5 MB.", "A film may be at most 6 MB."], from);
});

t.test("a date in digits is its day, month and year", async (t) => {
  const from = libraryFrom([documentSource("## Anmeldung\n\nAnmeldung bis 16.04.2027, danach ist der Kurs voll.")]);
  passes(t, ["Anmeldung bis 16.4.2027.", "Anmeldung bis 2027."], from);
  goes(t, ["Anmeldung bis 17.04.2027.", "Anmeldung bis 16.04.2028."], from);
});

t.test("a date is the same day in each form, and no other day", async (t) => {
  const days: [language: string, text: string, same: string[], other: string[]][] = [
    [
      "de",
      "Der Sekt kommt am 16. April 2027. Vom 24.12. bis 10.01. ist der Laden zu.",
      [
        "Der Sekt kommt am 16.04.2027.",
        "Der Sekt kommt am 16.4.27.",
        "Vom 24. Dezember bis 10. Januar ist der Laden zu.",
      ],
      ["Der Sekt kommt am 16.06.2027.", "Vom 24.12. bis 10.10. ist der Laden zu.", "Der Sekt kommt am 16.04.2028."],
    ],
    [
      "en",
      "The gala is on 6 March 2027. Children from 16 may join. In May 20 € is the price of a towel.",
      [
        "The gala is on 06/03/2027.",
        "The gala is on March 6, 2027.",
        "The gala is on the 6th of March.",
        "A towel costs 20 € in May.",
      ],
      [
        "The gala is on 3 April 2027.",
        "The gala is on 6 May 2027.",
        "The gala is on 16 May.",
        "The gala is on 05/03/2027.",
      ],
    ],
    [
      "de",
      "Die Messe ist vom 14.-18.06.2027. Der Markt ist am 13./14.02.2027. Der Laden ist vom 01.05.2027-03.06.2027 zu.",
      [
        "Die Messe ist vom 14. bis 18. Juni 2027.",
        "Der Markt ist am 13. und 14. Februar 2027.",
        "Der Laden ist vom 1. Mai bis 3. Juni 2027 zu.",
      ],
      ["Die Messe ist vom 15. bis 18. Juni 2027.", "Der Markt ist am 12. Februar 2027.", "Am 3. Mai ist der Laden zu."],
    ],
    [
      "fr",
      "Fermé du 1er au 20 août, ouvert le 2027-09-03.",
      ["Ouvert le 3 septembre 2027."],
      ["Ouvert le 3 août 2027."],
    ],
    [
      "de",
      "Die Kurse sind am 13./14. Februar 2027.",
      ["Die Kurse sind am 13. und 14. Februar 2027."],
      ["Die Kurse sind am 13. und 14. Januar 2027."],
    ],
    ["es", "La fiesta es el 1 de mayo de 2027.", ["La fiesta es el 1/5/2027."], ["La fiesta es el 2/5/2027."]],
  ];
  for (const [language, text, same, other] of days) {
    const from = libraryFrom([documentSource(text)]);
    for (const sentence of same) t.equal(filtered(sentence, 7, { from, language }).text, sentence, sentence);
    for (const sentence of other) t.equal(filtered(sentence, 7, { from, language }).text, "", sentence);
  }
});

t.test("each day of a list and both ends of a span are dates, and a word between them is no part of one", async (t) => {
  const from = libraryFrom([
    documentSource(
      "The park is open from April 1 to October 31.\n\nThe winter camp is on December 27–30, 2027.\n\nThe carving course takes place on 4, 11 and 18 May. Groups of 10 in June get a tour.",
    ),
  ]);
  passes(
    t,
    [
      "The park is open from April 1 to October 31.",
      "The park is open until 31 October.",
      "The winter camp is from December 27 to December 30.",
      "The winter camp begins on 27 December 2027.",
      "The carving course takes place on May 11.",
    ],
    from,
  );
  goes(t, ["The park is open until 1 October.", "The carving course takes place on 12 May."], from);
  goes(t, ["Groups get a tour on 10 June."], from);
  passes(t, ["The concert costs €10."], libraryFrom([documentSource("Concert: €10, 12 May.")]));
  const walk = libraryFrom([documentSource("The walk is on June 3, 10 a.m. The market is on June 5, 9–12.")]);
  passes(t, ["The walk is on June 3 at 10 a.m.", "The market is open on June 5 from 9:00 to 12:00."], walk);
  goes(t, ["The walk is on June 10.", "The market is on June 9."], walk);
  goes(t, ["The yoga class is on May 12."], libraryFrom([documentSource("Yoga class: May 4, 12 places left.")]));
  const inFrench = libraryFrom([documentSource("Le stage de poterie a lieu du 3 au 5 mai.")]);
  t.not(filtered("Le stage de poterie commence le 3 mai.", 7, { from: inFrench, language: "fr" }).text, "");
});

t.test("no price of a row is said of its blank cell, or of a row that has the price for its name", async (t) => {
  const from = libraryFrom([
    documentSource(
      "| | Summer | Winter |\n|---|---|---|\n| Adult | £6.50 | £4 |\n| Child 4 to 15 | £3.50 | £2.50 |\n| Family | £17 | – |",
    ),
  ]);
  passes(t, ["A family pays £17 in summer.", "An adult pays £6.50 in summer and £4 in winter."], from);
  goes(t, ["A family pays £17 in winter."], from);
  const plans = libraryFrom([
    documentSource(
      "| Plan | Price | Chat | Balcony |\n|---|---|---|---|\n| Free | – | – | |\n| Team | $9 | ✓ | – |\n| Pro | $19 | ✓ | ● |",
    ),
  ]);
  passes(t, ["The Team plan with chat costs $9.", "The Pro plan costs $19 and has a balcony."], plans);
  goes(t, ["The Free plan costs $9."], plans);
  for (const cross of ["✗", "❌", "x", "n/a", "–", "no"]) {
    const table = `| Plan | Price | Chat |\n|---|---|---|\n| Free | $2 | ${cross} |\n| Team | $9 | ✓ |`;
    goes(t, ["The Free plan with chat costs $2."], libraryFrom([documentSource(table)]));
  }
  const balconies = libraryFrom([
    documentSource(
      "| Zimmer | Preis | Balkon |\n|---|---|---|\n| Einzelzimmer | 60 € | nein |\n| Doppelzimmer | 80 € | ja |",
    ),
  ]);
  const german = { from: balconies, language: "de" };
  t.equal(filtered("Das Einzelzimmer kostet 60 € und hat einen Balkon.", 7, german).text, "");
  t.not(filtered("Das Doppelzimmer kostet 80 € und hat einen Balkon.", 7, german).text, "");
  const classes = libraryFrom([
    documentSource("| | Monday | Tuesday |\n|---|---|---|\n| Yoga | 9:00 | – |\n| Pilates | – | 10:00 |"),
  ]);
  passes(t, ["Yoga is on Mondays at 9:00."], classes);
  goes(t, ["Yoga is on Tuesdays at 9:00.", "Pilates is on Mondays at 10:00."], classes);
});

t.test("a bound that denies more is none from below, and a price is no time", async (t) => {
  for (const bound of ["no more than", "never more than", "up to"]) {
    const from = libraryFrom([documentSource(`A group has ${bound} 8 people.`)]);
    passes(t, ["A group has at most 8 people."], from);
    goes(t, ["A group has more than 8 people.", "A group has at least 8 people."], from);
  }
  for (const bound of ["nicht mehr als", "nie mehr als"]) {
    const german = { from: libraryFrom([documentSource(`Eine Gruppe hat ${bound} 8 Personen.`)]), language: "de" };
    t.not(filtered("Eine Gruppe hat höchstens 8 Personen.", 7, german).text, "");
    t.equal(filtered("Eine Gruppe hat mehr als 8 Personen.", 7, german).text, "");
    t.equal(filtered("Eine Gruppe hat mindestens 8 Personen.", 7, german).text, "");
  }
  goes(t, ["Lunch is at 12:30."], libraryFrom([documentSource("Lunch costs £12.30.")]));
});

t.test("what a text says of some days of the week, a sentence says of no others", async (t) => {
  const rows =
    "| Group | Day and time | Fee |\n|---|---|---|\n| Newts | Tue 16:30 | £48 |\n| Otters | Thu 17:00 | £54 |";
  const from = libraryFrom([
    documentSource(
      `${rows}\n\n## Desk\n\nThe desk is staffed Tuesday to Friday, 10 to 18.\n\n## Café\n\nThe café at the lake opens at 9 every day, with cake on Sundays.`,
    ),
  ]);
  passes(
    t,
    [
      "Newts meets on Tuesdays at 16:30.",
      "The desk is staffed on Thursdays from 10 am to 6 pm.",
      "The café at the lake opens at 9 on Fridays.",
    ],
    from,
  );
  goes(
    t,
    [
      "Newts meets on Thursdays at 16:30.",
      "The desk is staffed on Mondays from 10 am to 6 pm.",
      "The desk is staffed on Tuesdays until 6 am.",
    ],
    from,
  );
  const creche = libraryFrom([documentSource("La crèche est ouverte du lundi au vendredi, de 7 h 30 à 18 h.")]);
  const say = (text: string) => filtered(text, 7, { from: creche, language: "fr" }).text;
  t.not(say("La crèche est ouverte le mercredi."), "");
  t.equal(say("La crèche est ouverte le samedi."), "");
  const office = libraryFrom([documentSource("Office: Monday through Friday 9am–5pm, Sat 10am–2pm.")]);
  passes(t, ["The office is open on Saturday from 10am to 2pm."], office);
  const shop = libraryFrom([documentSource("De winkel is open van dinsdag t/m zaterdag van 10 tot 17 uur.")]);
  const dutch = (text: string) => filtered(text, 7, { from: shop, language: "nl" }).text;
  t.not(dutch("De winkel is op vrijdag open van 10 tot 17 uur."), "");
  t.equal(dutch("De winkel is op maandag open van 10 tot 17 uur."), "");
  const portuguese = (text: string, said: string) =>
    filtered(said, 7, { from: libraryFrom([documentSource(text)]), language: "pt" }).text;
  const hours = "A loja está aberta de segunda-feira a sexta-feira, das 9 às 18 horas.";
  t.not(portuguese(hours, "A loja está aberta na quarta-feira."), "");
  t.equal(portuguese(hours, "A loja está aberta no domingo."), "");
  t.not(portuguese("O café fecha à quarta-feira.", "O café fecha à quarta-feira."), "");
  t.equal(portuguese("O café fecha à quarta-feira.", "O café fecha à quinta-feira."), "");
});

t.test("a clause without a subject of its own speaks of the one before", async (t) => {
  const from = libraryFrom([
    documentSource(
      "A board costs €15 for two hours and €25 for a day, a wetsuit €10 for a day. From 36 bottles we give a discount of 5%, from 60 bottles 8%.",
    ),
  ]);
  passes(t, ["A board costs €25 for a day.", "From 60 bottles you get a discount of eight percent."], from);
  goes(
    t,
    ["A board costs €15 for a day.", "A board costs €10 for a day.", "From 36 bottles you get a discount of 8%."],
    from,
  );
  const tour = libraryFrom([documentSource("Price of the tour: £120 per person, under 12s £60.")]);
  passes(t, ["The tour costs £120 per person."], tour);
  goes(t, ["The tour costs £60 per person."], tour);
});

t.test("two figures side by side are of one thing, and minutes may follow a full stop", async (t) => {
  const from = libraryFrom([
    documentSource("## Tours\n\nA curator shows you round at 9.30 and 14.00 on Saturdays. The café opens at 9:15."),
  ]);
  passes(
    t,
    ["The tours on Saturdays are at 9:30 and 14:00.", "The café opens at 9.15.", "The tours are at 9:30am."],
    from,
  );
  goes(t, ["The tours on Saturdays are at 9:20 and 14:00.", "The café opens at 9.50.", "The café opens at 21."], from);
});

t.test("a bound such as 'never more than' negates nothing, nor does the German 'noch'", async (t) => {
  const english = libraryFrom([documentSource("Bank transfers cost 0.8%, at most £2. Cards cost 3%.")]);
  passes(t, ["Bank transfers cost 0.8%, but never more than £2."], english);
  goes(t, ["Bank transfers never cost 0.8%."], english);
  const from = libraryFrom([documentSource("## Was noch dazukommt\n\n- Sehtest: 6,43 € beim Optiker")]);
  const says = "Der Sehtest kostet 6,43 € beim Optiker.";
  t.equal(filtered(says, 7, { from, language: "de" }).text, says);
});

t.test("Swedish numbers that are written out are read", async (t) => {
  const from = libraryFrom([documentSource("En kurs på 25 timmar kostar 1 200 kr.")]);
  const say = (text: string) => filtered(text, 7, { from, language: "sv" }).text;
  t.not(say("En kurs på tjugofem timmar kostar 1 200 kr."), "");
  t.equal(say("En kurs på tjugosex timmar kostar 1 200 kr."), "");
});

t.test("a name before a colon is denied by what follows", async (t) => {
  const from = libraryFrom([
    documentSource("We deliver to England. Northern Ireland: we can't, since the rules changed."),
  ]);
  passes(t, ["We can't deliver to Northern Ireland."], from);
  goes(t, ["We deliver to Northern Ireland."], from);
});

t.test("a sentence is removed if a number, price, time, address or link is not in the text", async (t) => {
  goes(t, [
    "The Team plan costs $8.",
    "The Team plan costs 9 €.",
    "The Team plan costs five hundred dollars.",
    "Setup is 10,000 €.",
    "Write to hello@acme.example.",
    "Write to [us](mailto:evil@evil.example).",
    "Call +49 30 7654321.",
    "See [more](https://evil.example/?q=1).",
    "See evil.com/login.",
    "The Team plan costs $9 at evil.travel.",
    "The Team plan costs $9 at //evil.travel.",
    "The Team plan costs $9 at http:/evil.travel/login.",
    "The Team plan costs $9 at .evil.travel.",
    "The Team plan costs $9 …evil.travel.",
    "The warranty is 2 years at münchen.reisen.",
    "See [more](/relative).",
    "See [more](javascript:alert).",
    "We are open until 6 pm.",
    "You save 20 %.",
    "Use SAVE30.",
    "It has ٤٢ rooms.",
    "It has ４２ rooms.",
    "Over 500 customers trust us.",
  ]);
});

t.test(
  "a sentence is removed if its figure belongs to another thing, if it denies the text, or if it names something absent",
  async (t) => {
    goes(t, [
      "An e-bike costs £26 for one day.",
      "An e-bike costs £119 for one day.",
      "Setup costs $9.",
      "Riders must be at least 10 on multi-day tours.",
      "Dinners are included.",
      "Dogs are allowed in the shop.",
      "You can also reach us on WhatsApp.",
    ]);
  },
);

t.test("a figure belongs to its row, column, clause and span of time, and no name is new", async (t) => {
  passes(
    t,
    [
      "Wheel for beginners costs £295 for ten weeks.",
      "A child under 16 pays £24 for Pinch & Coil.",
      "An induction costs £40 once.",
      "The Fountain pen plan has 8 users.",
      "Pinch & Coil costs £38 for adults and £24 under 16.",
      "A road bike is mended for £30 and an e-bike for £45.",
      "You may bring bread without charge.",
    ],
    courses,
  );
  goes(
    t,
    [
      "Wheel for beginners costs £168 for ten weeks.",
      "A child under 16 pays £38 for Pinch & Coil.",
      "The Pen plan has 8 users.",
      "Pinch & Coil costs £24 for adults and £38 under 16.",
      "A road bike is mended for £45 and an e-bike for £30.",
      "The car park costs £2 a day.",
      "Our tutor Owen Miller lives next door.",
      "Vouchers can be for memberships.",
      "You can bring your own cake.",
    ],
    courses,
  );
});

t.test("a span of time is a rate or a number, and a row is the one whose whole label is said", async (t) => {
  const hire = libraryFrom([
    documentSource(
      "## Hire\n\n| Bike | Half day | Day | Deposit |\n|---|---|---|---|\n| E-bike | £25 | £38 | £800 |\n" +
        "| Cargo e-bike | £34 | £55 | £1,500 |\n\nThe weekend course takes two days and costs £235. Backups are made every hour " +
        "and kept for 35 days. The option costs £3 a day; it does not cover theft.",
      { title: "Hire" },
    ),
  ]);
  passes(t, ["An e-bike costs £38 a day.", "A cargo e-bike costs £55 a day.", "Backups are kept for 35 days."], hire);
  goes(
    t,
    [
      "An e-bike costs £55 a day.",
      "An e-bike costs £38 an hour.",
      "The weekend course costs £235 per month.",
      "Backups are kept for 35 hours.",

      "The option covers theft.",
    ],
    hire,
  );
});

t.test("halves and quarters of a unit are a span like any other, in each language", async (t) => {
  const spans: [language: string, text: string, same: string, other: string][] = [
    ["en", "A tour lasts 45 minutes.", "A tour lasts three quarters of an hour.", "A tour lasts half an hour."],
    ["en", "The course takes 90 minutes.", "The course takes an hour and a half.", "The course takes half an hour."],
    [
      "de",
      "Eine Karte ruht bis zu sechs Monate.",
      "Eine Karte ruht ein halbes Jahr.",
      "Eine Karte ruht ein Viertel Jahr.",
    ],
    [
      "de",
      "Der Kurs endet nach halbem Jahr.",
      "Der Kurs endet nach sechs Monaten.",
      "Der Kurs endet nach zwei Monaten.",
    ],
    ["fr", "L’essai dure une demi-heure.", "L’essai dure 30 minutes.", "L’essai dure un quart d’heure."],
    [
      "it",
      "Il tavolo è tenuto quindici minuti.",
      "Il tavolo è tenuto un quarto d’ora.",
      "Il tavolo è tenuto mezz’ora.",
    ],
    ["nl", "Een zitting duurt 45 minuten.", "Een zitting duurt drie kwartier.", "Een zitting duurt anderhalf uur."],
    ["es", "La clase dura 90 minutos.", "La clase dura una hora y media.", "La clase dura media hora."],
    ["pt", "O passeio dura 30 minutos.", "O passeio dura meia hora.", "O passeio dura uma hora e meia."],
  ];
  for (const [language, text, same, other] of spans) {
    const from = libraryFrom([documentSource(text)]);
    t.equal(filtered(same, 7, { from, language }).text, same, same);
    t.equal(filtered(other, 7, { from, language }).text, "", other);
  }
  const club = libraryFrom([
    documentSource("Membership is £96 a month, half membership £58. Repairs take two to three weeks."),
  ]);
  passes(t, ["Membership costs £96 a month and half membership £58.", "Repairs take 14 to 21 days."], club);
});

t.test("a number keeps its unit, a rate too", async (t) => {
  const from = libraryFrom([
    documentSource(
      "The bus from the station takes twelve minutes. Beyond the town it is £1.20 a mile. The wall is 16 m high.",
    ),
    documentSource("| | Price |\n|---|---|\n| Adult | £14 |", { title: "Entry" }),
  ]);
  passes(t, ["The bus from the station takes 12 minutes.", "The wall is 16 metres high."], from);
  goes(
    t,
    [
      "The bus from the station takes twelve miles.",
      "Beyond the town it is £1.20 per minute.",
      "The wall is 14 m high.",
    ],
    from,
  );
});

t.test("what a list of days or items denies, it denies of each", async (t) => {
  const shop = libraryFrom([documentSource("## Horaires\n\nL’atelier est fermé le dimanche et le lundi.")]);
  t.equal(filtered("L’atelier est ouvert le lundi.", 7, { from: shop, language: "fr" }).text, "");
  t.not(filtered("L’atelier est fermé le lundi.", 7, { from: shop, language: "fr" }).text, "");
  const hire = libraryFrom([documentSource("Kletterschuhe 4,50 € · Gurt 3,50 € · Seil 5,00 €")]);
  t.equal(filtered("Ein Gurt kostet 4,50 €.", 7, { from: hire, language: "de" }).text, "");
  t.not(filtered("Ein Gurt kostet 3,50 €.", 7, { from: hire, language: "de" }).text, "");
});

t.test("a word that is a day in another language names none", async (t) => {
  const from = libraryFrom([documentSource("## Tarifs\n\nLe mardi, un retard coûte 10 € par quart d’heure.")]);
  t.not(filtered("Un retard d’un quart d’heure coûte 10 €.", 7, { from, language: "fr" }).text, "");
});

t.test("included and paying nothing are no charge, but a price that includes nothing is", async (t) => {
  const from = libraryFrom([
    documentSource("## Hire\n\nThe helmet and the lock are included.\n\n## Tax\n\nAll prices include VAT."),
  ]);
  passes(t, ["You don’t pay for the helmet and the lock."], from);
  goes(t, ["The prices do not include VAT."], from);
});

t.test("closed is not open, and a price is not at least that price, in each language", async (t) => {
  const shop = libraryFrom([
    documentSource(
      "## Hours\n\nThe shop is open Tuesday to Saturday and closed on Sunday. The café is open from 8:00 to 17:00 and the bar closes at 11pm. To close your account, open the settings.\n\n## Prices\n\n" +
        "The hand-painted mug costs 89 EUR. Lessons cost from 40 EUR. Groups have 4–8 people. Cancel 14 days or more ahead.",
      { title: "Shop" },
    ),
    documentSource(
      "## Zeiten\n\nDas Café ist am Montag geschlossen. Die Torte kostet 30 EUR. Der Kurs hat höchstens 6 Plätze.",
      { title: "Café" },
    ),
    documentSource("## Horaires\n\nLa crèche est fermée du 2 au 20 août. Le repas coûte 7 EUR.", { title: "Crèche" }),
  ]);
  const [de, fr] = ["de", "fr"].map((language) => ({ language, from: shop }));
  passes(
    t,
    [
      "The shop is closed on Sunday.",
      "The shop is not open on Sunday.",
      "The shop is open on Saturday.",
      "The café closes at 5 pm.",
      "The bar is open until 11pm.",
      "You can close your account in the settings.",
      "The mug costs 89 EUR.",
      "Lessons cost at least 40 EUR.",
      "Groups have at most 8 people.",
      "Cancel at least 14 days ahead.",
    ],
    shop,
  );
  goes(
    t,
    [
      "The shop is open on Sunday.",
      "The mug costs at least 89 EUR.",
      "The mug costs up to 89 EUR.",
      "Lessons cost at most 40 EUR.",
    ],
    shop,
  );
  for (const sentence of ["Montags ist das Café geöffnet.", "Die Torte kostet mindestens 30 EUR."])
    t.match(filtered(sentence, 7, de), { kept: 0 }, sentence);
  for (const sentence of ["Am Montag ist das Café zu.", "Der Kurs hat bis zu 6 Plätze."])
    t.match(filtered(sentence, 7, de), { kept: 1 }, sentence);
  t.match(filtered("Du 2 au 20 août, la crèche est fermée.", 7, fr), { kept: 1 });
  t.match(filtered("La crèche est ouverte du 2 au 20 août.", 7, fr), { kept: 0 });
});

t.test("a bound is read in the language of the text, where a deadline and a range are bounds", async (t) => {
  const shop = libraryFrom(
    [
      "The wheel class is 45 min long. Please cancel 48 hours before your visit. Groups can move their visit until 10 days before. Bike hire is £45 for 2 days. Tours have 4 to 9 guests.",
      "Der Keramik-Kurs kostet ab 40 EUR. Die Lampe kostet 70 EUR. Beide sind bei uns im Studio und für alle da.",
      "De winkel ligt dicht bij het station. De winkel is zondag open. Het café is op maandag dicht.",
    ].map((text) => documentSource(`## Info\n\n${text}`, { title: "Shop" })),
  );
  passes(
    t,
    [
      "Please cancel at least 48 hours before your visit.",
      "Groups can move their visit up to 10 days before.",
      "The Keramik-Kurs costs at least 40 EUR.",
      "Tours have at most 9 guests.",
    ],
    shop,
  );
  goes(
    t,
    [
      "The wheel class is at least 45 minutes long.",
      "The Lampe costs at least 70 EUR.",
      "Bike hire is at least £45 for 2 days.",
    ],
    shop,
  );
  const nl = { language: "nl", from: shop };
  t.match(filtered("De winkel bij het station is zondag open.", 7, nl), { kept: 1 });
  t.match(filtered("Het café is op maandag open.", 7, nl), { kept: 0 });
});

t.test("one sentence may say other words, another unit of time, no charge, or two facts of the text", async (t) => {
  const shop = libraryFrom([
    documentSource(
      "## Guarantee\n\nSeams and zips are guaranteed for ten years, fabric for five. Money goes back to your card within a week. " +
        "Stitches come out free of charge.\n\n## Rabbits\n\nRabbits must go on eating before an operation.\n\n" +
        "## Data\n\nAll data is stored in Frankfurt. Prices include VAT.\n\n## Disks\n\nThe disks are encrypted at rest.",
      { title: "Shop" },
    ),
  ]);
  passes(
    t,
    [
      "Zips are guaranteed for ten years.",
      "The fabric is guaranteed for five years.",
      "Money goes back to your card within seven days.",
      "Stitches come out at no charge.",
      "No, rabbits must go on eating before an operation.",
      "All data is stored in Frankfurt, and the disks are encrypted at rest.",
    ],
    shop,
  );
  goes(
    t,
    [
      "The fabric is guaranteed for ten years.",
      "Zips are guaranteed for five years.",
      "Money goes back to your card within 14 days.",
      "Stitches do not come out.",
      "No, rabbits must not eat before an operation.",
      "All data is stored in Frankfurt, and the disks are shared with partners.",
      "Prices are without VAT.",
    ],
    shop,
  );
});

t.test("facts of one section may share a sentence, a fact of another section only if it says enough", async (t) => {
  const from = libraryFrom([
    documentSource(
      "## Rooms\n\nShowers are not available. There are two changing rooms.\n\n## Cancelling\n\nUp to seven days before your visit you can " +
        "cancel without charge. After that we keep 80 % of the price.\n\n## Café\n\nThe café has two ovens and 30 chairs.",
      { title: "Studio" },
    ),
  ]);
  passes(
    t,
    [
      "There are no showers, but there are two changing rooms.",
      "Up to seven days before your visit you can cancel without charge, after that we keep 80 % of the price.",
    ],
    from,
  );
  goes(
    t,
    [
      "There are no showers, but there are three changing rooms.",
      "There are no showers, but the sauna is open.",
      "Up to seven days before your visit you can cancel without charge, after that we keep 70 % of the price.",
    ],
    from,
  );
});

t.test("a single amount is of all that a sentence speaks of", async (t) => {
  const table =
    "| | Solo | Studio |\n|---|---|---|\n| Check interval | 5 minutes | 1 minute |\n| Price per month | €9 | €35 |";
  const from = libraryFrom([documentSource(`## Plans\n\n${table}`, { title: "Monitoring" })]);
  const costing = (price: string) => `The Studio plan has a check interval of 1 minute, and it costs ${price} a month.`;
  passes(t, [costing("€35")], from);
  goes(t, [costing("€9")], from);
});

t.test("a negated heading denies its items, but no sentence and no row below it", async (t) => {
  const from = libraryFrom([
    documentSource(
      "## Not our fault\n\n- glued buttons\n\nUncollected coats are kept for six months.\n\n## If you can't come\n\n| Notice | Fee |\n|---|---|\n| 30 to 15 days | 40 % |\n" +
        "| 14 to 2 days | 60 % |",
      { title: "Terms" },
    ),
  ]);
  passes(t, ["Uncollected coats are kept for six months.", "With a notice of 30 to 15 days the fee is 40 %."], from);
  goes(t, ["Glued buttons are our fault.", "Uncollected coats are kept for nine months."], from);
});

t.test("a number of days or metres may lie within a range of the text", async (t) => {
  const from = libraryFrom([
    documentSource(
      "## Berths\n\n| Boat | Price |\n|---|---|\n| up to 7 m | €21 |\n| 7 to 10 m | €29 |\n\n## Delivery\n\nDelivery of a sail takes 7 to 14 days.",
      { title: "Marina" },
    ),
  ]);
  passes(t, ["A boat of 9 m pays €29.", "Delivery of a sail can take 10 days, or two weeks."], from);
  goes(t, ["A boat of 11 m pays €29.", "A boat of 9 m pays €21.", "Delivery of a sail can take 15 days."], from);
  const bounds = ["at most 10 days", "up to 10 days", "at least 10 days", "8 to 10 days"];
  goes(
    t,
    bounds.map((bound) => `Delivery of a sail takes ${bound}.`),
    from,
  );
});

t.test("'each' and 'whole' are evidence for all, and 'with' for what is included", async (t) => {
  const from = libraryFrom([
    documentSource(
      "## Bikes\n\nEach used bike has a guarantee.\n\n## Locks\n\nA padlock is tested by hand.\n\n## Prices\n\nPrices are with VAT. Delivery costs extra.",
      { title: "Shop" },
    ),
  ]);
  passes(t, ["All used bikes have a guarantee.", "VAT is included in prices."], from);
  goes(t, ["All padlocks are tested by hand.", "Delivery is included in prices.", "VAT is free."], from);
  const café = libraryFrom([documentSource("Breakfast with eggs costs 9 €. Parking with a permit is 5 € a day.")]);
  goes(t, ["Breakfast is included.", "Parking is included."], café);
});

t.test("a known address carries no untrue sentence", async (t) => {
  goes(t, [
    "Ask Harald Brumm at hi@acme.example.",
    "Dogs are allowed in the shop, write to hi@acme.example.",
    "Insurance is included, see [the demo](https://acme.example/demo).",
    "The Team plan costs $5, call +49 30 1234567.",
  ]);
  passes(t, ["For a refund, write to hi@acme.example.", "You can book at [the demo](https://acme.example/demo)."]);
  const german = "Bei einer Reklamation schreiben Sie an hi@acme.example.";
  t.match(filtered(german, 7, { language: "de" }), { text: german, kept: 1 });
});

t.test("a heading has no figure, address, link or name that the text lacks, and denies nothing", async (t) => {
  goes(t, [
    "# Visit https://evil.example now",
    "## [here](https://evil.example/a)",
    "# Call 0900 123456",
    "### The Team plan costs $1",
    "> # Dogs are allowed in the shop",
    "- # Our boss Harald Brumm",
  ]);
  passes(t, ["# Overview", "## How to get started", "### [The demo](https://acme.example/demo)", "# 3 days: £66"]);
});

t.test("words that are spelled out are no small talk, and punctuation is no answer", async (t) => {
  goes(t, ["T h e  p l a n  i s  f r e e", "N-e-v-e-r s-p-e-a-k", "e v i l . e x a m p l e", "Д о м у т у т"]);
  t.match(filtered("Hello X Y Z."), { text: "Hello X Y Z.", kept: 1 });
  for (const text of [".", "...", "---", "“”"]) t.match(filtered(text), { text: "", kept: 0, dropped: 0 }, text);
});

t.test("'free' is a price, also in a sentence of everyday words", async (t) => {
  goes(t, ["It is free.", "The plan is free."]);
  const parking = libraryFrom([documentSource("## Parking\n\nParking is free for guests.", { title: "Stay" })]);
  passes(t, ["It is free.", "Yes, free.", "Parking is free."], parking);
  passes(t, ["Feel free to write to hi@acme.example."]);
});

t.test("'feel free' says nothing about a price, neither as a claim nor as evidence", async (t) => {
  passes(t, ["Feel free to ask!", "Feel free to ask if you have other questions."]);
  const service = libraryFrom([documentSource("## Service\n\nFeel free to bring your bike for a service.")]);
  goes(t, ["The service is free.", "A service for your bike is free."], service);
  const prices = libraryFrom([
    documentSource("## Service\n\nFeel free to ask for a service.\n\n## Prices\n\nA service costs 89 EUR."),
  ]);
  t.match(replyTo(prices, readQuestion("How much is a service?", "en")).markdown, /^\*\*Prices/);
});

t.test("an answer that begins with a table keeps its lines", async (t) => {
  const table = "| Plan | Price |\n|---|---|\n| Team | $9 |";
  t.match(filtered(table), { text: table, kept: 2 });
});

t.test("a sentence is checked against the passages that it cites, or against all if it cites none", async (t) => {
  const [plans, hire] = [numberOf("Team plan"), numberOf("E-bike")];
  t.match(filtered(`The Team plan costs $9 [${plans}].`), { text: "The Team plan costs $9.", kept: 1 });
  t.match(filtered(`The Team plan costs $9. [${plans}][${hire}]`), { text: "The Team plan costs $9.", kept: 1 });
  t.match(filtered(`The Team plan costs $9 [${plans}, ${hire}].`), { text: "The Team plan costs $9.", kept: 1 });
  t.match(filtered(`The Team plan costs $9 [${hire}].`), { text: "", dropped: 1 });
  t.match(filtered("The Team plan costs $9."), { kept: 1 });
});

t.test("numbers of passages are never shown, however the text was cut", async (t) => {
  const text = `The Team plan costs $9. [${numberOf("Team plan")}] Dogs are not allowed in the shop [${numberOf("Dogs")}]. Setup is 1,000 € [${numberOf("Team plan")}]`;
  for (const size of [1, 2, 3, 5, 11, 200])
    t.equal(
      filtered(text, size).text,
      "The Team plan costs $9. Dogs are not allowed in the shop. Setup is 1,000 €",
      `${size}`,
    );
});

t.test("the evidence of the sentences is recorded, and small talk has none", async (t) => {
  t.same(filtered("Hello! The Team plan costs $9. It costs $99.").used, ["The Team plan costs $9 per person."]);
  t.same(filtered("Hello! How can I help you today?").used, []);
});

t.test("a date with an ordinal number is one sentence, however the text was cut", async (t) => {
  const text = "Der Kurs beginnt am 16. April 2027 um 18 Uhr. Er dauert lange.";
  for (const size of [1, 2, 4, 9, 100])
    t.match(
      filtered(text, size, { language: "de" }).text,
      /^Der Kurs beginnt am 16\. April 2027 um 18 Uhr\./,
      `${size}`,
    );
});

t.test("the result doesn't depend on how the text was cut into deltas", async (t) => {
  const text =
    "# Plans\n\nThe **Team plan costs $9**. The plan has 50 GB! See [the demo](https://acme.example/demo).\n\n1. Setup is 1,000 €.\n2. Setup is $99. You save 10 %, e.g. with the code SAVE20.\n\n- the Team plan at $9\n- a $10 item\n\n| Plan | Price |\n|---|---|\n| Team | $9 |\n| Pro | $90 |\n\nThanks.";
  const whole = filtered(text, text.length);
  t.equal(
    whole.text,
    "# Plans\n\nThe **Team plan costs $9**. See [the demo](https://acme.example/demo).\n\n1. Setup is 1,000 €.\n2. You save 10 %, e.g. with the code SAVE20.\n\n- the Team plan at $9\n\n| Plan | Price |\n|---|---|\n| Team | $9 |\n\nThanks.",
  );
  for (const size of [1, 2, 3, 5, 11, 50]) t.same(filtered(text, size), whole, `${size}`);
});

t.test("nor does that of a sentence or line without end", async (t) => {
  const endless = "The Team plan costs $9 and ".repeat(48);
  const lengths = [1199, 1200, 1201, 1202, 1250];
  const endings = ["\n", ". Setup is 1,000 €.", ".\n\n- Setup is 1,000 €", "!", ` ${"x".repeat(1300)}. Thanks.`];
  for (const text of lengths.flatMap((length) => endings.map((ending) => endless.slice(0, length - 1) + ending))) {
    const whole = filtered(text, text.length);
    for (const size of [1, 7, 50, 1000]) t.same(filtered(text, size), whole, `${size} of ${text.length}`);
  }
});

t.test("a sentence is sent once the next one begins, a line as soon as it ends", async (t) => {
  const filter = new Grounding(library, passages, { language: "en", never: [], links: [] });
  t.equal(filter.push("The Team plan costs $9!"), "");
  t.equal(filter.push(" S"), "The Team plan costs $9! ");
  t.equal(filter.push("etup is 1,000 €\n"), "Setup is 1,000 €");
});

t.test("an introduction without what it introduces is not shown, nor talk without a fact", async (t) => {
  const shown: [text: string, shown: string][] = [
    ["Great question! The Gold plan costs $99. Let me know if you need more.", ""],
    ["Sure! Here are our plans:\n\n- Gold: $99\n- Silver: $77\n\nLet me know if you need more!", ""],
    ["Here are our plans:\n\n- Gold: $99\n- Team plan: $9", "Here are our plans:\n\n- Team plan: $9"],
    ["Hello! The Gold plan costs $99. The Team plan costs $9.", "Hello! The Team plan costs $9."],
    ["Setup is 1,000 €.\n\nOther plans:\n\n- Gold: $99\n\nThanks.", "Setup is 1,000 €.\n\nThanks."],
    ["| Plan | Price |\n|---|---|\n| Gold | $99 |", ""],
    ["Hello! How can I help you?", "Hello! How can I help you?"],
    ["Setup is 1,000 €. Here is more:", "Setup is 1,000 €. Here is more:"],
    ["Setup is 1,000 €.\n\n## Other plans\n\nGold costs $99.\n\nThanks.", "Setup is 1,000 €.\n\nThanks."],
    ["## Other plans\n\nGold costs $99.\n\n## Plans\n\nSetup is 1,000 €.", "## Plans\n\nSetup is 1,000 €."],
    ["| A |\n|---|\n| Setup: 1,000 € |\n\n| B |\n|---|\n| Gold: $99 |", "| A |\n|---|\n| Setup: 1,000 € |"],
  ];
  for (const [text, expected] of shown)
    for (const size of [1, 7, 1000]) t.equal(filtered(text, size).text, expected, `${text} ${size}`);
});

t.test("links that the page offers besides its text are allowed", async (t) => {
  const links = [{ label: "Book", href: "https://acme.example/book" }];
  t.match(filtered("You can [book here](https://acme.example/book).", 7, { links }), { kept: 1 });
  t.match(filtered("You can [book here](https://acme.example/book)."), { kept: 0 });
});

t.test("mail addresses and telephone numbers are shown as text", async (t) => {
  t.equal(filtered("[Email us](mailto:hi@acme.example) any time.").text, "Email us (hi@acme.example) any time.");
  t.equal(filtered("Call [+49 30 1234567](tel:+49301234567).").text, "Call +49 30 1234567.");
});

t.test("raw HTML and images go, the words stay", async (t) => {
  t.equal(
    filtered("Hello <b onclick=alert(1)>there</b> and <img src=x onerror=alert(1)>thanks.").text,
    "Hello there and thanks.",
  );
  t.equal(filtered("Thanks ![x](https://evil.example/p.png) again.").text, "Thanks  again.");
  t.equal(filtered("Hello<script>alert(1)</script>, thanks.").text, "Hello, thanks.");
  t.equal(filtered("Thanks !<b>[x](https://acme.example/demo) again.").text, "Thanks  again.");
});

t.test("secret strings are removed with their sentence", async (t) => {
  t.equal(
    filtered("Setup is $9. Setup is 1,000 €. The text starts at TEXT-abc. Thanks.", 4, { never: ["TEXT-ABC"] }).text,
    "Setup is 1,000 €. Thanks.",
  );
});

t.test("no hostile text of a model leaves markup, an image or an outside link", async (t) => {
  const inputs = JSON.parse(
    readFileSync(new URL("../fixtures/assistant/hostile.json", import.meta.url), "utf8"),
  ) as string[];
  for (const input of inputs) {
    for (const text of [input, `Hello. ${input} And more.`, `- ${input}\n- ok`]) {
      for (const size of [1, 4, 1000]) {
        const passed = filtered(text, size).text;
        t.notMatch(passed, /<[a-z/!?]/i, input);
        t.notMatch(passed, /!\[|evil\.example|\]\((?!https:\/\/acme\.example\/(?:demo|pricing)\))/i, input);
      }
    }
  }
});

t.test("the figures of an endless hyphenated word are read in one pass", { timeout: 60_000 }, async (t) => {
  t.same(figuresBeyond("abc-".repeat(100_000), "", "en"), []);
  t.same(figuresBeyond(`${"abc-".repeat(100)}acme.travel`, "", "en").length, 1);
});

t.test("the days of each line of a long list are read once for all sentences", (t) => {
  const pool = `## Pool\n\n${"- Friday pool\n".repeat(300)}`;
  const barn = `## Barn\n\n${"- Monday: big red workshop barn open late\n".repeat(400)}`;
  const from = libraryFrom([documentSource(`${pool}\n${barn}`)]);
  const { user: before } = process.cpuUsage();
  const passed = filtered("The big red workshop barn is open late on Friday. ".repeat(20), 50, { from });
  t.match(passed, { text: "" });
  const ms = (process.cpuUsage().user - before) / 1000;
  t.ok(ms < 3000, `${ms} ms of CPU`);
  t.end();
});

t.test("endless sentences and floods of marks are cut", async (t) => {
  const floods = [
    "<",
    "[",
    "![",
    "<script",
    "a ",
    "**",
    ".",
    "- ",
    "[a](",
    "<!--",
    "a. ",
    "|",
    "`",
    "語",
    "[1]",
    "x. [1]",
  ];
  for (const piece of floods) {
    const { text } = filtered(piece.repeat(6000 / piece.length), 50);
    t.notMatch(text, /<[a-z/!?]|!\[/i, piece);
  }
});

t.test("a number in groups has decimals, and letters of a script without spaces make no code with it", (t) => {
  const spa = libraryFrom([documentSource("La cure coûte 1 250,50 €. Le forfait coûte 2 400,00 €.")]);
  const inn = libraryFrom([documentSource("和室8畳は12,800円です。チェックインは15時から18時までです。")]);
  const shown = (sentence: string, from: Library, language: string) => filtered(sentence, 7, { from, language }).text;
  for (const same of ["La cure coûte 1250,50 €.", "Le forfait coûte 2 400 €."]) t.equal(shown(same, spa, "fr"), same);
  for (const same of ["和室8畳の料金は12,800円です。", "チェックインは15時からです。"])
    t.equal(shown(same, inn, "ja"), same);
  t.equal(shown("La cure coûte 50 €.", spa, "fr"), "");
  t.equal(shown("和室8畳の料金は15,800円です。", inn, "ja"), "");
  t.equal(shown("洋室は12,800円です。", inn, "ja"), "", "yen name no room");
  t.end();
});
