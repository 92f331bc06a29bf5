/**
 * Loaded before a test on Node. tap watches every promise to learn in which subtest a late error was thrown, which costs a fifth of the
 * processor time. Without that such an error still fails its file, as on Deno, which has no such hooks.
 */
import hooks from "node:async_hooks";
import { syncBuiltinESMExports } from "node:module";

const unused = { enable: () => unused, disable: () => unused };
hooks.createHook = () => unused;
syncBuiltinESMExports();
