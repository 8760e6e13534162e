/** A claim of a token: its value, and the members that lead to it. */
interface FoundClaim {
  readonly value: unknown;
  readonly at: readonly string[];
}

type Claims = Readonly<Record<string, unknown>>;

/** The members of a path such as `realm_access.roles`. `\.` is a dot in a name, and `\\` a backslash. */
export function claimPath(text: string): readonly string[] {
  const parts = text.match(/(?:\\[^]|[^.\\])+/g) ?? [];
  return parts.map((part) => part.replace(/\\([^])/g, '$1'));
}

/** The claim at a path, or the one of exactly this name. null: the token has none. */
export function claimOf(claims: Claims, text: string): FoundClaim | null {
  if (Object.hasOwn(claims, text)) return { value: claims[text], at: [text] };
  const at = claimPath(text);
  let value: unknown = claims;
  for (const name of at) {
    if (typeof value !== 'object' || value === null || Array.isArray(value)) return null;
    if (!Object.hasOwn(value, name)) return null;
    value = (value as Claims)[name];
  }
  return { value, at };
}
