import { existsSync, readFileSync } from "node:fs";
import { extname } from "node:path";
import { Fail } from "../core/platform/errors.ts";
import { fileOf } from "../core/platform/files.ts";
import { lazyByKey } from "../core/platform/lazy.ts";
import { nothing } from "../schemas/schema.ts";
import { type SharedBody, sharedBody } from "./reply.ts";
import type { Request } from "./request.ts";
import { page, type Row } from "./route.ts";

export const contentTypes: Record<string, string> = {
  ".js": "text/javascript; charset=utf-8",
  ".css": "text/css; charset=utf-8",
  ".svg": "image/svg+xml",
  ".png": "image/png",
  ".ico": "image/x-icon",
  ".json": "application/json",
  ".map": "application/json",
};
/** Built files come first, in a build and in the sources; style sheets need no build. */
const folders = ["browser/", "dist/browser/", "api/browser/"].map(fileOf);
const fileName = /^[a-z0-9-]+\.(js|css|svg|ico)$/;

const headers = {
  "Cache-Control": "max-age=300, stale-while-revalidate=86400",
  "Cross-Origin-Resource-Policy": "cross-origin",
};
const assetView = (asset: SharedBody, request: Request) => asset(request, headers);

/** Scripts and style sheets of the public pages, from `dist/browser` and `api/browser`. */
export const assetRows: Row[] = [
  page("GET /assets/:file", nothing, async (_runtime, { file }) => asset(file), assetView, { logged: false }),
  page("GET /favicon.ico", nothing, async () => asset("favicon.ico"), assetView, { logged: false }),
];

/** A file, read once per process. */
const asset = lazyByKey((file: string): SharedBody => {
  const url = fileName.test(file) && folders.map((folder) => new URL(file, folder)).find((one) => existsSync(one));
  if (!url) throw new Fail("not_found");
  return sharedBody(contentTypes[extname(file)] as string, readFileSync(url));
});
