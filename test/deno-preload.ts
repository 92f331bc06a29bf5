/**
 * Loaded before a test on Deno. tap knows a call site by its constructor's name, which the prototype of Deno's call sites
 * lacks; this gives it one.
 */

const prepare = Error.prepareStackTrace;
Error.prepareStackTrace = (_error, sites) => sites;
const [site] = new Error("a stack to look at").stack as unknown as object[];
if (prepare) Error.prepareStackTrace = prepare;
else Reflect.deleteProperty(Error, "prepareStackTrace");

const prototype: unknown = site && Object.getPrototypeOf(site);
if (prototype && prototype !== Object.prototype && !Object.hasOwn(prototype, "constructor")) {
  Object.defineProperty(prototype, "constructor", { value: class CallSite {}, configurable: true });
}
