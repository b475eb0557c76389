/** Copies objects that refer to each other, with their classes. Functions are shared. */
export function cloneGraph<T>(root: T): T {
  const copies = new Map<object, object>();
  const known = <Copy extends object>(value: object, copy: Copy): Copy => {
    copies.set(value, copy);
    return copy;
  };
  const copyValue = (value: unknown): unknown => {
    if (typeof value !== 'object' || value === null) return value;
    if (copies.has(value)) return copies.get(value);
    if (value instanceof Map) {
      const copy = known(value, new Map());
      for (const [key, one] of value) copy.set(copyValue(key), copyValue(one));
      return copy;
    }
    if (value instanceof Set) {
      const copy = known(value, new Set());
      for (const one of value) copy.add(copyValue(one));
      return copy;
    }
    const copy = known(value, Array.isArray(value) ? [] : (Object.create(Object.getPrototypeOf(value)) as object));
    for (const [key, one] of Object.entries(value)) Reflect.set(copy, key, copyValue(one));
    return copy;
  };
  return copyValue(root) as T;
}
