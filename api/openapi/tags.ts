import type { Row } from "../route.ts";

/** The nouns of the service, in reading order. */
export const tags = [
  { name: "Account", description: "The signed-in user, sessions, tokens, desktop pairing and settings." },
  { name: "Pages", description: "HTML pages of a handle, served to visitors once they are published." },
  { name: "Knowledge", description: "Documents that the assistant and agents may quote." },
  { name: "Assistant", description: "Answers visitors' questions about a published page. No authentication." },
  { name: "Leads", description: "Submissions of visitors, and their use by owners." },
  { name: "Campaigns", description: "Group leads; email rules send when a lead is captured or converts." },
  { name: "Domains", description: "Domains of an account, and the DNS records that let them send mail." },
  { name: "Email", description: "Senders, templates, messages, delivery events and suppressions." },
  { name: "Scheduling", description: "Schedules, event types and bookings, for owners." },
  { name: "Booking", description: "Event types, slots and bookings, for visitors. No authentication." },
  { name: "Connected accounts", description: "Calendars, video meetings and payment at other providers." },
  { name: "Payments", description: "Checkout of paid pages, their purchases, and events of the payment provider." },
  { name: "Webhooks", description: "Endpoints that receive signed events, and their deliveries." },
  { name: "Strategy", description: "Retrieval of strategy examples, for agents." },
  { name: "MCP", description: "The tools of the Model Context Protocol." },
] as const;

/** Path patterns with their tag; the first match wins. */
const tagPatterns: [RegExp, (typeof tags)[number]["name"]][] = [
  [/^\/v2\/account\/domains/, "Domains"],
  [/^\/(v2\/account|oauth\/assistant)\/|^\/v2\/handles\/:handle\/settings/, "Account"],
  [/^\/mcp\//, "MCP"],
  [/\/checkout|\/purchases\b|\/providers\/stripe/, "Payments"],
  [/\/agentic-|\/lead-sections\//, "Assistant"],
  [/\/pages\b/, "Pages"],
  [/\/knowledge\b/, "Knowledge"],
  [/\/leads\b/, "Leads"],
  [/\/(campaigns|conversions)\b/, "Campaigns"],
  [/\/email\b/, "Email"],
  [/\/webhooks\b/, "Webhooks"],
  [/\/scheduling\/(integrations|selected-calendars)\b/, "Connected accounts"],
  [/^\/v2\/public\/scheduling\//, "Booking"],
  [/^\/v2\/public\/calendars\//, "Scheduling"],
  [/\/scheduling\b/, "Scheduling"],
  [/\/strategy\b/, "Strategy"],
];

/** The tag of a row. */
export function tagOf({ path }: Pick<Row, "path">): string {
  return tagPatterns.find(([place]) => place.test(path))?.[1] ?? "Service";
}
