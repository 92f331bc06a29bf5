/** Writes the pages of docs/ that are generated from tables in the sources. */
import { writeFileSync } from "node:fs";
import { dataPage } from "../fixtures/key-table.ts";

writeFileSync(new URL("../docs/data.md", import.meta.url), dataPage());
