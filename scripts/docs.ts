/** Writes the pages of docs/ that are made from tables of the sources. */
import { writeFileSync } from "node:fs";
import { dataPage } from "../fixtures/key-table.ts";

writeFileSync(new URL("../docs/data.md", import.meta.url), dataPage());
