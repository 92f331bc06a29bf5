/** Returns a function that makes a value when it is first called, and returns the same one from then on. */
export function lazy<T extends object>(make: () => T): () => T {
  let value: T | undefined;
  return () => {
    value ??= make();
    return value;
  };
}

/** Like `lazy`, with one value for each key. */
export function lazyByKey<T extends object, K = string>(
  make: (key: K) => T,
  made: { get(key: K): T | undefined; set(key: K, value: T): unknown } = new Map(),
): (key: K) => T {
  return (key) => {
    const value = made.get(key) ?? make(key);
    made.set(key, value);
    return value;
  };
}

/** The same for objects, such as connections to Redis, of which tests and tools open several: a value lasts as long as its object. */
export function perObject<K extends object, T extends object>(make: (object: K) => T): (object: K) => T {
  return lazyByKey(make, new WeakMap<K, T>());
}
