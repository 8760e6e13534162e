/** The maximum number of levels of objects and arrays in an item. The item itself is the first level. */
export const MAX_DEPTH = 32;

const LONE_SURROGATE = /\p{Surrogate}/u;

/** The reason why an item may not have a field of this name. null when it may. */
export function nameFault(name: string): string | null {
  if (name.startsWith('$')) return 'begins with $';
  if (name.includes('\0')) return 'contains a NUL character';
  if (name === '__proto__') return 'is not allowed';
  return LONE_SURROGATE.test(name) ? 'is not valid Unicode' : null;
}

/** The names that lead from a document to a nested field, the outermost first. */
export type Path = readonly string[];

/**
 * The path that a name stands for: `customer.country` is the field `country` of `customer`. A name whose dots do not
 * separate names stays one name: `No.`, `.5`, `e.g. this`.
 */
export function pathOf(name: string): Path {
  const parts = name.split('.');
  return parts.every((part) => part !== '' && part.trim() === part) ? parts : [name];
}
