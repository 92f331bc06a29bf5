/** Writes the TypeScript types of the OpenAPI document: `npm run client -- [file]`, by default .data/api.d.ts. */
import { mkdirSync, writeFileSync } from "node:fs";
import { dirname, resolve } from "node:path";
import process from "node:process";
import openapiTS, { astToString } from "openapi-typescript";
import { readOpenApi } from "../fixtures/document.ts";

const file = resolve(process.argv[2] ?? ".data/api.d.ts");
const types = await openapiTS(JSON.stringify(readOpenApi("http://localhost:8080")));
mkdirSync(dirname(file), { recursive: true });
writeFileSync(file, astToString(types));
process.stdout.write(`${file}\n`);
