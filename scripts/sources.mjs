/** Lets Node run the TypeScript sources, in threads too, which `--import tsx` alone doesn't do on Node 20. */
import { register } from "tsx/esm/api";

register();
