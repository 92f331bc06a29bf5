import { existsSync, readFileSync } from "node:fs";
import { promisify } from "node:util";
import { brotliCompress, constants, gzip } from "node:zlib";
import { Fail } from "../core/platform/errors.ts";
import { fileOf } from "../core/platform/files.ts";
import { entityTag } from "./reply.ts";
import { object, string } from "../schemas/schema.ts";
import { anyone, type Request, type Row, route, type View } from "./route.ts";

/** A file in each content coding in which it is sent (RFC 9110, section 8.4.1). */
interface Asset {
  type: string;
  coded: Record<Coding, { body: Uint8Array; etag: string }>;
}

type Coding = "br" | "gzip" | "identity";

const types: Record<string, string> = {
  js: "text/javascript; charset=utf-8",
  css: "text/css; charset=utf-8",
  svg: "image/svg+xml",
  ico: "image/x-icon",
};
/** Built files come first, in a build and in the sources; style sheets need no build. */
const folders = ["browser/", "dist/browser/", "api/browser/"].map(fileOf);
const fileName = /^[a-z0-9-]+\.(js|css|svg|ico)$/;
const loaded = new Map<string, Promise<Asset>>();

/** Scripts and style sheets of the public pages, from `dist/browser` and `api/browser`. */
export const assetRows: Row[] = [
  route("GET /assets/:file", anyone, object({ file: string() }), (_runtime, { file }) => asset(file), {
    view: assetView,
    hidden: true,
    logged: false,
  }),
];

/** The icon of every host. */
export function favicon(): Promise<Asset> {
  return asset("favicon.ico");
}

/** The asset in the smallest coding that the client accepts. */
export function assetView({ type, coded }: Asset, request: Request): View {
  const coding = request.coding(["br", "gzip"]);
  const { body, etag } = coded[coding];
  const headers = {
    ETag: etag,
    "Cache-Control": "max-age=300, stale-while-revalidate=86400",
    "Cross-Origin-Resource-Policy": "cross-origin",
    ...(coding === "identity" ? {} : { "Content-Encoding": coding }),
  };
  return { type, body, headers };
}

async function asset(file: string): Promise<Asset> {
  const known = loaded.get(file);
  if (known) return known;
  const place = fileName.test(file) && folders.map((folder) => new URL(file, folder)).find((url) => existsSync(url));
  if (!place) throw new Fail("not_found");
  const loading = load(place, types[file.split(".").at(-1) as string] as string);
  loaded.set(file, loading);
  // The next request tries again.
  loading.catch(() => loaded.delete(file));
  return loading;
}

/** Reads and compresses a file: once per process, since a large one takes a tenth of a second. */
async function load(place: URL, type: string): Promise<Asset> {
  const plain = readFileSync(place);
  const params = { [constants.BROTLI_PARAM_QUALITY]: 9 };
  const [br, gzipped] = await Promise.all([promisify(brotliCompress)(plain, { params }), promisify(gzip)(plain)]);
  return { type, coded: { identity: tagged(plain), br: tagged(br), gzip: tagged(gzipped) } };
}

function tagged(body: Uint8Array): Asset["coded"][Coding] {
  return { body, etag: entityTag(body) };
}
