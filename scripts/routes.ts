import { writeFileSync } from "node:fs";
import { routeTable } from "../fixtures/routes.ts";

writeFileSync(new URL("../fixtures/routes.txt", import.meta.url), routeTable());
