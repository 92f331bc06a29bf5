import { Buffer } from "node:buffer";
import { readFileSync } from "node:fs";
import { gzipSync } from "node:zlib";
import { bundled } from "../../fixtures/browser.ts";
import { languages } from "../../schemas/languages.ts";
import type { BenchRow } from "./figures.ts";

const sheets = ["card.css", "scheduling.css"].map((file) => new URL(`../../api/browser/${file}`, import.meta.url));

/** Bytes that the visitor's scheduling page loads, and that an embedding page loads. */
export async function bench(): Promise<BenchRow[]> {
  const script = Buffer.from(await bundled("scheduling"));
  const words = Object.values(languages).map(({ bookingPage }) => weighed(Buffer.from(JSON.stringify(bookingPage))));
  const styles = sheets.reduce((sum, sheet) => sum + weighed(readFileSync(sheet)), 0);
  const weight = weighed(script) + styles + Math.max(...words);
  const embed = Buffer.from(await bundled("scheduling-embed"));
  return [
    {
      name: "scheduling page, script, style sheet and words of one language, gzip -9",
      value: weight,
      unit: "bytes",
      bar: "<= 19000",
      baseline: `${weighed(script)} bytes of it the script`,
    },
    { name: "scheduling embed script, gzip -9", value: weighed(embed), unit: "bytes", bar: "<= 1000" },
  ];
}

function weighed(bytes: Uint8Array): number {
  return gzipSync(bytes, { level: 9 }).length;
}
