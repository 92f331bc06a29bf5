/** Lets Node run the sources as they are, in threads too, which `--import tsx` alone does not on Node 20. */
import { register } from "tsx/esm/api";

register();
