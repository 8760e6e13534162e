import { createHash } from 'node:crypto';

/** The members of a key in the file. Its secret is `secret-of-NAME`. */
export type KeyGiven = { readonly name: string } & Readonly<Record<string, unknown>>;

export const bearer = (name: string) => ({ authorization: `Bearer secret-of-${name}` });

/** The content of a keys file. */
export function keysText(keys: readonly KeyGiven[]): string {
  const digestOf = (name: string) => createHash('sha256').update(`secret-of-${name}`).digest('hex');
  return JSON.stringify({ keys: keys.map((key) => ({ sha256: digestOf(key.name), ...key })) });
}
