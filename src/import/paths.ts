/** The names that lead from a document to a nested field, the outermost first. */
export type Path = readonly string[];

/** Fields in their order. It is a Map because an object would move names like `2024` to the front. */
export type Fields = Map<string, unknown>;

/**
 * The path that a name stands for: `customer.country` is the field `country` of `customer`. A name whose dots do not
 * separate names stays one name: `No.`, `.5`, `e.g. this`.
 */
export function pathOf(name: string): Path {
  const parts = name.split('.');
  return parts.every((part) => part !== '' && part.trim() === part) ? parts : [name];
}

/** Sets the field at a path. Creates the documents that lead to it; none of them may be another value. */
export function putAt(fields: Fields, path: Path, value: unknown): void {
  let inner = fields;
  for (const name of path.slice(0, -1)) {
    let next = inner.get(name);
    if (!(next instanceof Map)) inner.set(name, (next = new Map()));
    inner = next as Fields;
  }
  inner.set(path.at(-1) ?? '', value);
}
