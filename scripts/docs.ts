/** Writes the pages of docs/ that are generated from tables in the sources. */
import { writeFileSync } from "node:fs";
import { dataPage } from "../fixtures/key-table.ts";
import { logPage } from "../fixtures/log-table.ts";

write("data.md", dataPage());
write("log.md", logPage());

function write(name: string, page: string): void {
  writeFileSync(new URL(`../docs/${name}`, import.meta.url), page);
}
