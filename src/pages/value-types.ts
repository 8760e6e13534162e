import { BSON } from '../store/bson.ts';
import { BSON_TYPE } from '../store/bson-types.ts';
import type { Plan } from '../store/store.ts';
import { decodeToken } from './token.ts';

/**
 * The BSON types of the values that a plan was asked with: those of its equalities, in the order of their paths, then
 * that of its range. A text in a query can stand for values of several types. A cursor and a part carry the types with
 * which their walk began, so a walk is never continued with another reading. They carry no values: those always come
 * from the request, or, unasked, from its key.
 *
 *     length (1 byte) | one type each (1 byte)
 */
export function valueTypes({ equals = [], range }: Plan): Buffer {
  const types = equals
    .toSorted((a, b) => (a.path < b.path ? -1 : 1))
    .map(({ value }) =>
      typeof value === 'string' ? BSON_TYPE.string : (BSON.serialize({ value })[TYPE_AT] ?? 0),
    );
  if (range) types.push(range.bracket);
  return Buffer.of(types.length, ...types);
}

/** Where the type of a document's first element is. */
const TYPE_AT = 4;

/** Separates the types from the rest of a token's content. Null when the content is too short. */
export function splitTypes(content: Buffer): { readonly types: Uint8Array; readonly rest: Buffer } | null {
  const length = content[0];
  if (length === undefined || content.length <= length) return null;
  return { types: content.subarray(1, 1 + length), rest: content.subarray(1 + length) };
}

/** The types that a token carries whose version is one of these. Null when it is not a sound token of these versions. */
export function typesOfToken(text: string, versions: readonly number[]): Uint8Array | null {
  const token = decodeToken(text, versions);
  return typeof token === 'string' ? null : (splitTypes(token.content)?.types ?? null);
}
