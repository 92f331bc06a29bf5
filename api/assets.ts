import { existsSync, readFileSync } from "node:fs";
import { Fail } from "../core/platform/errors.ts";
import { fileOf } from "../core/platform/files.ts";
import { entityTag } from "./reply.ts";
import { object, string } from "../schemas/schema.ts";
import { anyone, type Row, route, type View } from "./route.ts";

interface Asset {
  type: string;
  body: Uint8Array;
  etag: string;
}

const types: Record<string, string> = {
  js: "text/javascript; charset=utf-8",
  css: "text/css; charset=utf-8",
  svg: "image/svg+xml",
  ico: "image/x-icon",
};
/** Built files come first, in a build and in the sources; style sheets need no build. */
const folders = ["browser/", "dist/browser/", "api/browser/"].map(fileOf);
const fileName = /^[a-z0-9-]+\.(js|css|svg|ico)$/;
const loaded = new Map<string, Asset>();

/** Scripts and style sheets of the public pages, from `dist/browser` and `api/browser`. */
export const assetRows: Row[] = [
  route("GET /assets/:file", anyone, object({ file: string() }), async (_runtime, { file }) => asset(file), {
    view: assetView,
    hidden: true,
    logged: false,
  }),
];

/** The icon of every host. */
export function favicon(): View {
  return assetView(asset("favicon.ico"));
}

function assetView({ type, body, etag }: Asset): View {
  const headers = {
    ETag: etag,
    "Cache-Control": "max-age=300, stale-while-revalidate=86400",
    "Cross-Origin-Resource-Policy": "cross-origin",
  };
  return { type, body, headers };
}

function asset(file: string): Asset {
  if (!fileName.test(file)) throw new Fail("not_found");
  const known = loaded.get(file) ?? load(file);
  loaded.set(file, known);
  return known;
}

function load(file: string): Asset {
  const place = folders.map((folder) => new URL(file, folder)).find((url) => existsSync(url));
  if (place === undefined) throw new Fail("not_found");
  const body = readFileSync(place);
  return { type: types[file.split(".").at(-1) as string] as string, body, etag: entityTag(body) };
}
