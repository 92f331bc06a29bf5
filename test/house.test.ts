import { readdirSync } from "node:fs";
import t from "tap";
import ts from "typescript";
import { Metrics } from "../api/metrics.ts";
import { rows } from "../api/rows.ts";
import { isOfHandle } from "../core/operations/handle-keys.ts";
import { logEvents } from "../core/platform/log-events.ts";
import type { Runtime } from "../core/platform/runtime.ts";
import { keys } from "../core/store/keys.ts";
import { scripts } from "../core/store/scripts.ts";
import { keyTable } from "../fixtures/key-table.ts";
import { logPage } from "../fixtures/log-table.ts";
import { routeTable } from "../fixtures/routes.ts";
import {
  files,
  type Import,
  nodes,
  positionText,
  projectRoot,
  type SourceFile,
  sources,
  sourceText,
} from "../fixtures/sources.ts";
import { scopes, settings } from "../schemas/account.ts";
import { triggerNames } from "../schemas/campaigns.ts";
import { localParts, purposes, statuses } from "../schemas/email.ts";
import { errors } from "../schemas/errors.ts";
import { providerKeys } from "../schemas/integrations.ts";
import { jobs } from "../schemas/jobs.ts";
import { propertiesOf } from "../schemas/schema.ts";
import { webhookEventTypes } from "../schemas/webhooks.ts";
import { workerRows } from "../workers/rows.ts";

const floors: Record<string, string[]> = {
  schemas: [],
  core: ["schemas"],
  api: ["core", "schemas"],
  workers: ["core", "schemas"],
};
const house = sources(...Object.keys(floors));
const core = house.filter(({ path }) => isCore(path));
/** The nouns of core, from the lowest to the highest. */
const nouns = [
  ...["account", "webhooks", "email", "campaigns", "leads", "knowledge", "pages", "assistant"],
  ...["scheduling", "payments", "strategy", "operations"],
];
const rooms = ["platform", "store", "engines", ...nouns, "open.ts", "process.ts"];
/** Lines that a room is meant to have at most: a compass, no limit. */
const budgets: Record<string, number> = {
  schemas: 2000,
  "core/engines/answers": 1200,
  "core/engines/calendars": 3800,
  "core/engines/lanes": 1200,
  "core/engines/mail": 1200,
  "core/engines/relay": 1200,
  "core/engines/search": 1200,
  "core/engines/slots": 1200,
  api: 3000,
  "api/browser": 4500,
  workers: 350,
};
const everything = [...house, ...sources("scripts", "fixtures", "test")];
/** A large library that few processes need: its file is loaded lazily, past its door. */
const lazy = "core/engines/mail/mailbox.ts";
const entries = ["api/server.ts", "workers/main.ts"];
const floorOf = (path: string): string => path.split("/")[0] as string;

/** The places, as `path:line`, of the nodes that a rule refuses. */
function found(list: SourceFile[], refuses: (node: ts.Node) => boolean): string[] {
  return list.flatMap((source) => [...nodes(source.tree)].filter(refuses).map((node) => positionText(source, node)));
}

/** The imports that a rule refuses, as `from -> to`. */
function arrows(list: SourceFile[], refuses: (one: Import, from: string) => boolean): string[] {
  return list.flatMap(({ path, imports }) =>
    imports.filter((one) => refuses(one, path)).map(({ target }) => `${path} -> ${target}`),
  );
}

t.test(
  "imports go down: schemas <- core <- {api, workers}, and nothing imports scripts, fixtures and test",
  async (t) => {
    const climbs = arrows(house, ({ isOurs, target }, from) => {
      const [floor, to] = [floorOf(from), floorOf(target)];
      return isOurs && to !== floor && !floors[floor]?.includes(to);
    });
    t.same(climbs, []);
  },
);

t.test("a floor has only the tools of its work", async (t) => {
  t.same(
    arrows(house, ({ isOurs }, from) => from.startsWith("schemas/") && !isOurs),
    [],
    "schemas are pure data",
  );
  const web = /^(koa|@koa\/.*|koa-body)$/;
  t.same(
    arrows(house, ({ target }, from) => web.test(target) && floorOf(from) !== "api"),
    [],
    "Koa stays in api/",
  );
  const working = ({ target, names }: Import) => target === "bullmq" && names.includes("Worker");
  t.same(
    arrows(house, (one, from) => working(one) && floorOf(from) !== "workers"),
    [],
    "Worker stays in workers/",
  );
  const context = (node: ts.Node) => ts.isIdentifier(node) && node.text === "ctx";
  t.same(
    found(
      house.filter(({ path }) => floorOf(path) !== "api"),
      context,
    ),
    [],
    "ctx stays in api/",
  );
});

t.test("no two files need each other, not even for a type", async (t) => {
  const needs = new Map(
    house.map(({ path, imports }) => [path, imports.filter(({ isOurs }) => isOurs).map(({ target }) => target)]),
  );
  t.same(cycles(needs), []);
});

t.test("core has four storeys, and each imports only from those below it", async (t) => {
  t.same(
    arrows(core, ({ isOurs, target }, from) => isOurs && isCore(target) && storeyOf(target) > storeyOf(from)),
    [],
  );
  t.same(
    core.map(({ path }) => path.split("/")[1] as string).filter((room) => !rooms.includes(room)),
    [],
    "every room is known",
  );
});

t.test("an engine is entered by its door, and knows neither nouns nor other engines", async (t) => {
  const engine = (path: string): string | undefined => /^core\/engines\/([^/]+)\//.exec(path)?.[1];
  const isDoor = (path: string): boolean => path === `core/engines/${engine(path)}/${engine(path)}.ts`;
  t.same(
    arrows(
      house,
      ({ target }, from) =>
        Boolean(engine(target)) && engine(target) !== engine(from) && !isDoor(target) && !opens(from, target),
    ),
    [],
  );
  t.same(
    arrows(
      core,
      ({ isOurs, target }, from) =>
        isOurs &&
        isCore(target) &&
        Boolean(engine(from)) &&
        engine(target) !== engine(from) &&
        !/^core\/(platform|store)\//.test(target),
    ),
    [],
  );
});

t.test("a noun is used by its face, and only by nouns above it", async (t) => {
  const noun = (path: string): string | undefined => nouns.find((name) => path.startsWith(`core/${name}/`));
  t.same(
    arrows(
      house,
      ({ target }, from) =>
        Boolean(noun(target)) && noun(target) !== noun(from) && target !== `core/${noun(target)}/face.ts`,
    ),
    [],
  );
  const level = (path: string): number => nouns.indexOf(noun(path) as string);
  t.same(
    arrows(core, ({ target }, from) => Boolean(noun(target)) && Boolean(noun(from)) && level(target) > level(from)),
    [],
    "the order of nouns",
  );
});

t.test("no barrels: only doors and faces hand names on", async (t) => {
  t.same(
    everything.filter(({ path }) => /(^|\/)index\.ts$/.test(path)),
    [],
  );
  const isFace = (path: string): boolean => /^core\/(engines\/([^/]+)\/\2|[^/]+\/face)\.ts$/.test(path);
  t.same(
    arrows(everything, ({ isExport }, from) => isExport && !isFace(from)),
    [],
  );
});

t.test("rooms keep to their budgets, or this report says by how much they don't", async (t) => {
  for (const [room, budget] of Object.entries(budgets)) {
    const lines = files(room).filter(
      (path) => /\.(ts|lua)$/.test(path) && (room === "api/browser" || !path.startsWith("api/browser/")),
    );
    const count = lines.reduce((sum, path) => sum + sourceText(path).split("\n").length - 1, 0);
    t.comment(`${room}: ${count} lines of ${budget}`);
  }
  t.ok(Object.keys(budgets).length > 0);
});

t.test("no path aliases, and every import of a file names its ending", async (t) => {
  const options = JSON.parse(sourceText("tsconfig.json")).compilerOptions;
  t.same(
    [options.paths, options.baseUrl, JSON.parse(sourceText("package.json")).imports],
    [undefined, undefined, undefined],
  );
  t.same(
    arrows(everything, ({ isOurs, target }) => isOurs && !/\.(m?ts|mjs|json)$/.test(target)),
    [],
  );
});

t.test("only the entries, open.ts and rarely used tools import inside functions", async (t) => {
  const tools = ["api/dashboard.ts", "api/mcp.ts", "core/engines/calendars/providers/stripe.ts"];
  const may = [...entries, "core/open.ts", "core/knowledge/documents.ts", ...tools];
  t.same(
    arrows(house, ({ isLazy }, from) => isLazy && !may.includes(from)),
    [],
  );
});

t.test("settings are read in the two entries alone", async (t) => {
  const environment = (node: ts.Node) =>
    ts.isPropertyAccessExpression(node) &&
    node.name.text === "env" &&
    /^(process|Deno)$/.test(node.expression.getText());
  t.same(
    found(
      house.filter(({ path }) => !entries.includes(path)),
      environment,
    ),
    [],
  );
});

t.test("keys are written in core/store/keys.ts alone", async (t) => {
  const key = (node: ts.Node) =>
    (ts.isStringLiteralLike(node) || ts.isTemplateHead(node)) && /^[a-z][a-z-]*:\{/.test(node.text);
  const [redis, others] = [house.filter(isRedis), house.filter((source) => !isRedis(source))];
  t.ok(found(redis, key).length > 10, "the rule sees keys");
  t.same(found(others, key), []);
});

t.test("every key says whether it goes with a handle", async (t) => {
  const owners = new Map(keyTable().map(({ name, owner }) => [name, owner]));
  const makers = Object.entries(keys).filter(([, key]) => typeof key === "function");
  for (const [name, key] of makers) {
    const goesWith = /^(handle|tag)$/.test(owners.get(name) ?? "");
    const made = (key as (...parts: string[]) => string)("acme", "acme", "acme", "acme");
    t.equal(
      isOfHandle(made, "acme"),
      goesWith,
      `${name}: the kinds of a handle are listed in core/operations/handle-keys.ts`,
    );
  }
  t.notOk(isOfHandle(keys.handles, "all"));
});

t.test("a file is named after a noun", async (t) => {
  const vague = /(^|\/)(utils?|helpers?|common|services?|managers?|types|constants|misc|shared)(\/|\.ts$)/;
  const allowed = ["fixtures/service.ts"];
  t.same(
    everything.map(({ path }) => path).filter((path) => vague.test(path) && !allowed.includes(path)),
    [],
  );
});

t.test("a number at the top of a file is a constant in capitals, and the units of time are in one place", async (t) => {
  const units = "core/platform/clock.ts";
  const isNumber = (node: ts.Node | undefined): boolean =>
    node !== undefined &&
    (ts.isNumericLiteral(node) || (ts.isBinaryExpression(node) && isNumber(node.left) && isNumber(node.right)));
  const isSmall = ({ name, initializer }: ts.VariableDeclaration) =>
    isNumber(initializer) && /^[a-z]/.test(name.getText());
  const refuses = (node: ts.Node) =>
    ts.isVariableStatement(node) &&
    ts.isSourceFile(node.parent) &&
    (node.declarationList.flags & ts.NodeFlags.Const) !== 0 &&
    node.declarationList.declarations.some(isSmall);
  const others = house.filter(({ path }) => path !== units);
  t.same(found(others, refuses), []);
});

t.test("the top folder contains only the floors", async (t) => {
  const folders = ["api", "core", "docs", "fixtures", "schemas", "scripts", "test", "workers"];
  const plain = ["LICENSE", "Procfile", "README.md", "biome.json", "package-lock.json", "package.json"];
  const known = [...folders, ...plain, "tsconfig.json", "dist", "node_modules"];
  const stray = readdirSync(projectRoot).filter((name) => !name.startsWith(".") && !/^dist-\d+$/.test(name));
  t.same(
    stray.filter((name) => !known.includes(name)),
    [],
  );
});

t.test("every script documents its purpose, keys, input and result, and returns words or values", async (t) => {
  const paths = files("core/store/lua").filter((path) => path.endsWith(".lua") && !path.endsWith("/prelude.lua"));
  t.ok(paths.length > 0);
  for (const path of paths) {
    const [header = ""] = /^(--.*\n)+/.exec(sourceText(path)) ?? [];
    const words = path.endsWith("-prelude.lua") ? ["Returns"] : ["Keys:", "Input:", "Returns"];
    for (const word of words) t.match(header, new RegExp(word), `${path} names ${word}`);
    t.notMatch(sourceText(path), /\breturn\s+-\d/, `${path} returns no negative number`);
    t.match(path, /^core\/store\/lua\/[a-z]+(-[a-z]+)+\.lua$/);
  }
});

t.test("each script is a row of the table, with every key and every field that it reads", async (t) => {
  const paths = files("core/store/lua").filter((path) => !path.endsWith("prelude.lua"));
  const rows = Object.entries(scripts);
  t.same(rows.map(([, { file }]) => `core/store/lua/${file}`).sort(), paths);
  const fields = inputFields();
  for (const [name, { file, keys, needs }] of rows) {
    t.equal(file, `${name.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}.lua`);
    const lua = [...needs, file].map((path) => sourceText(`core/store/lua/${path}`).replace(/--.*$/gm, "")).join("\n");
    t.same(namesIn(lua, "keys"), keys.map((key) => key.replace("[]", "")).sort(), `${file}: keys`);
    t.same(namesIn(lua, "input"), fields.get(name), `${file}: input`);
    t.notMatch(lua, /\b(KEYS|ARGV)\b/, `${file} reads nothing by its number`);
  }
});

/** The fields that a script reads of a Lua table: `a` and `b` of `keys.a .. keys.b`. */
function namesIn(lua: string, table: string): string[] {
  const found = Array.from(lua.matchAll(new RegExp(`\\b${table}\\.(\\w+)`, "g")), ([, name]) => name as string);
  return [...new Set(found)].sort();
}

/** The fields of each script's input, as its row in the table declares them. */
function inputFields(): Map<string, string[]> {
  const [table] = sources("core/store").filter(({ path }) => path === "core/store/scripts.ts");
  const rows = [...nodes(table!.tree)].filter(ts.isPropertyAssignment).flatMap(({ name, initializer }) => {
    const [input] = ts.isCallExpression(initializer) ? (initializer.typeArguments ?? []) : [];
    return input && ts.isTypeLiteralNode(input) ? [[name.getText(), input.members] as const] : [];
  });
  return new Map(rows.map(([name, members]) => [name, members.map((member) => member.name!.getText()).sort()]));
}

t.test("every code of the error table is provoked by a test", async (t) => {
  const said = files("test")
    .filter((path) => path.endsWith(".test.ts"))
    .map(sourceText)
    .join("\n");
  t.same(
    Object.keys(errors).filter((code) => !said.includes(`"${code}"`)),
    [],
    "write a test that expects each of them",
  );
});

t.test("the documents name every value of these lists", async (t) => {
  const tools = rows(new Metrics({} as Runtime)).flatMap(({ tool }) => tool?.name ?? []);
  const places: [path: string, values: readonly string[], place: string][] = [
    ["docs/reference.md", webhookEventTypes, "Webhook events"],
    ["docs/reference.md", [...purposes, ...localParts], "Senders"],
    ["docs/reference.md", statuses, "Delivery statuses and events"],
    ["docs/reference.md", triggerNames, "Email rules"],
    ["docs/reference.md", providerKeys, "Connected accounts"],
    ["docs/reference.md", Object.keys(propertiesOf(settings)), "Handle settings"],
    ["docs/reference.md", scopes, "Personal access tokens"],
    ["docs/reference.md", tools, "MCP"],
    ["docs/providers.md", providerKeys, "the table of providers"],
    ["api/mcp.ts", tools, "the description of the row"],
  ];
  for (const [path, values, place] of places)
    for (const value of values) t.ok(sourceText(path).includes(`\`${value}\``), `${path}: add ${value} to ${place}`);
});

t.test("the names that docs/style.md says exist", async (t) => {
  const rows = sourceText("docs/style.md").matchAll(/^\| [^|]+ \| ([^|]*`[^|]*) \| [^|]+ \|$/gm);
  const names = [...rows].flatMap(([, say = ""]) =>
    [...say.matchAll(/`([A-Za-z_]+)[^`]*`/g)].map(([, name]) => name as string),
  );
  t.ok(names.length > 50, "the rule sees the table");
  const text = house.map(({ path }) => `${path}\n${sourceText(path)}`).join("\n");
  t.same(
    names.filter((name) => !new RegExp(`\\b${name}`).test(text)),
    [],
  );
});

t.test("every job has one worker that does it", async (t) => {
  t.same(Object.keys(workerRows).sort(), Object.keys(jobs).sort());
});

t.test("the surface is the agreed one: `npm run routes` rewrites it", async (t) => {
  t.equal(routeTable(), sourceText("fixtures/routes.txt"));
});

t.test("only a signal that soon aborts is made by AbortSignal.any", async (t) => {
  const made = house.flatMap(({ path }) =>
    [...sourceText(path).matchAll(/^.*AbortSignal\.any\(.*$/gm)].map(([line]) => line),
  );
  t.same(
    made.filter((line) => !line.includes("AbortSignal.timeout(")),
    [],
    "others are made by withSignal, which says why",
  );
});

t.test("timers that hold up no exit are those of node:timers: Deno's own were numbers before 2.8", async (t) => {
  const unheld = house.filter(({ path }) => /\bset(?:Timeout|Interval)\([\s\S]*\.unref\(\)/.test(sourceText(path)));
  t.ok(unheld.length > 0);
  t.same(
    unheld.map(({ path }) => path).filter((path) => !sourceText(path).includes('from "node:timers"')),
    [],
  );
});

t.test("the lock file has an entry for every optional package, and no host", async (t) => {
  const { packages } = JSON.parse(sourceText("package-lock.json")) as { packages: Record<string, Locked> };
  const optional = Object.values(packages).flatMap((entry) => Object.keys(entry.optionalDependencies ?? {}));
  const places = new Set(Object.keys(packages).map((path) => path.split("node_modules/").at(-1)));
  t.same(
    optional.filter((name) => !places.has(name)),
    [],
    "`npm run lock` completes it",
  );
  t.same(
    Object.keys(packages).filter((path) => packages[path]?.resolved !== undefined),
    [],
  );
});

t.test("every dependency is pinned, used and explained", async (t) => {
  const { dependencies, devDependencies } = JSON.parse(sourceText("package.json")) as Record<
    string,
    Record<string, string>
  >;
  const all = { ...dependencies, ...devDependencies };
  t.same(
    Object.entries(all).filter(([, version]) => !/^(npm:ai@)?\d+\.\d+\.\d+$/.test(version)),
    [],
  );
  const resolved = house.flatMap(({ path }) => [...sourceText(path).matchAll(/import\.meta\.resolve\("([^"]+)"\)/g)]);
  const named = [
    ...house.flatMap(({ imports }) => imports.map(({ target }) => target)),
    ...resolved.map(([, to]) => to),
  ];
  const used = new Set(named.map((target) => packageOf(target as string)));
  t.same(
    Object.keys(dependencies ?? {}).filter((name) => !used.has(name)),
    [],
    "no package for show",
  );
  const [table = "", developmentTable = ""] =
    sourceText("README.md").split("## Dependencies")[1]?.split("For development:") ?? [];
  const unexplained = (packages: object = {}, text: string) =>
    Object.keys(packages).filter((name) => !text.includes(`\`${name}\``));
  t.same(
    [unexplained(dependencies, table), unexplained(devDependencies, developmentTable)],
    [[], []],
    "a line in its table of the README",
  );
});

t.test("comments cite headings that docs/reference.md has", async (t) => {
  const headings = new Set([...sourceText("docs/reference.md").matchAll(/^#+ (.+)$/gm)].map(([, heading]) => heading));
  const cited = [...Object.keys(floors), "scripts", "fixtures"]
    .flatMap(files)
    .flatMap((path) =>
      [...sourceText(path).matchAll(/docs\/reference\.md, "([^"]+)"/g)].map((match) => ({ path, heading: match[1] })),
    );
  t.ok(cited.length > 50);
  t.same(
    cited.filter(({ heading }) => !headings.has(heading)),
    [],
  );
});

t.test("docs/log.md is the table of log events, and the sources log each of them", async (t) => {
  t.equal(sourceText("docs/log.md"), logPage(), "`npm run -s docs` rewrites it");
  const sources = ["core", "api", "workers"].flatMap(files).filter((path) => path !== "core/platform/log-events.ts");
  const code = sources.map(sourceText).join("\n");
  for (const name of Object.keys(logEvents)) {
    t.match(name, /^[a-z]+(\.[a-z]+)?\.[a-z_]+$/, "area.object.event");
    const named = new RegExp(`"${name}"|\\$\\{[\\w.]+\\}${name.slice(name.indexOf("."))}\``);
    t.match(code, named, `${name} is logged`);
  }
});

t.test("the repository speaks of the product alone", async (t) => {
  const foreign = [
    /(?<![\w}])\/work\//,
    /\bTODO\b|\bFIXME\b|\bXXX\b/,
    /\/tmp\//,
    /\bregistry\.(npmjs|yarnpkg)|\bartifactory\b/i,
    /\b(chatgpt|claude|copilot)\b/i,
    /\bco-authored-by\b/i,
    /\bcontract \d/,
  ];
  const here = "test/house.test.ts";
  const folders = [...Object.keys(floors), "scripts", "fixtures", "test"];
  const paths = [...folders.flatMap(files), "README.md", "package.json", ".ci/run"].filter((path) => path !== here);
  const said = paths.flatMap((path) =>
    foreign.filter((word) => word.test(sourceText(path))).map((word) => `${path}: ${word}`),
  );
  t.same(said, []);
});

interface Locked {
  resolved?: string;
  optionalDependencies?: Record<string, string>;
}

function isCore(path: string): boolean {
  return path.startsWith("core/");
}

/** 0 platform, 1 store, 2 engines, 3 nouns, 4 the composition root. */
function storeyOf(path: string): number {
  const [, room = "", ...more] = path.split("/");
  const at = ["platform", "store", "engines"].indexOf(room);
  if (more.length === 0) return 4;
  return at < 0 ? 3 : at;
}

/** open.ts loads what is rarely needed when it is first asked for. */
function opens(from: string, target: string): boolean {
  return from === "core/open.ts" && target === lazy;
}

function isRedis({ path }: SourceFile): boolean {
  return path === "core/store/keys.ts";
}

function packageOf(target: string): string {
  return target
    .split("/")
    .slice(0, target.startsWith("@") ? 2 : 1)
    .join("/");
}

/** The cycles of a graph, each as the path that closes it. */
function cycles(needs: Map<string, string[]>): string[] {
  const done = new Set<string>();
  const closed: string[] = [];
  const walk = (path: string, way: string[]): void => {
    if (way.includes(path)) closed.push([...way.slice(way.indexOf(path)), path].join(" -> "));
    if (way.includes(path) || done.has(path)) return;
    for (const next of needs.get(path) ?? []) walk(next, [...way, path]);
    done.add(path);
  };
  for (const path of needs.keys()) walk(path, []);
  return closed;
}
