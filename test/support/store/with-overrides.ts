/**
 * The same object with some members in place of its own: a collection or a store that does some things in another way.
 * Its other methods are called on `inner`.
 */
export function withOverrides<T extends object>(inner: T, own: Partial<T>): T {
  const members = new Map<string, unknown>();
  for (
    let from: object | null = inner;
    from !== null && from !== Object.prototype;
    from = Object.getPrototypeOf(from) as object | null
  )
    for (const name of Object.getOwnPropertyNames(from)) {
      const value: unknown = Reflect.get(inner, name);
      if (name === 'constructor' || members.has(name)) continue;
      members.set(name, typeof value === 'function' ? (value.bind(inner) as unknown) : value);
    }
  return { ...(Object.fromEntries(members) as T), ...own };
}
