import { Buffer } from "node:buffer";
import { readFileSync } from "node:fs";
import { gzipSync } from "node:zlib";
import { bundled } from "../../fixtures/browser.ts";
import type { Row } from "./relay.ts";

const sheet = new URL("../../api/browser/scheduling.css", import.meta.url);

/** Bytes that the visitor's scheduling page loads, and that an embedding page loads. */
export async function bench(): Promise<Row[]> {
  const script = Buffer.from(await bundled("scheduling"));
  const parts = [script, readFileSync(sheet)];
  const weight = parts.map(weighed).reduce((sum, one) => sum + one, 0);
  const embed = Buffer.from(await bundled("scheduling-embed"));
  return [
    {
      name: "scheduling page, script and style sheet, gzip -9",
      value: weight,
      unit: "bytes",
      bar: "<= 25000",
      baseline: `${weighed(script)} bytes of it the script`,
    },
    { name: "scheduling embed script, gzip -9", value: weighed(embed), unit: "bytes", bar: "<= 1000" },
  ];
}

function weighed(bytes: Uint8Array): number {
  return gzipSync(bytes, { level: 9 }).length;
}
