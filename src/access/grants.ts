import type { BodyFault } from '../errors.ts';
import { parseJson, type JsonBody } from '../input/body-json.ts';
import { pointer } from '../input/json-scan.ts';
import { bodyCheck, faultsIn } from '../input/validate.ts';
import { GRANT, grantOf } from './keys-json.ts';
import type { Key } from './keys.ts';
import { rightsOf } from './rights.ts';

/** What a claim or JWT_DEFAULT grants: a key without its name and digest. */
export type Grant = Omit<Key, 'name' | 'digest' | 'issuer'>;

export interface GrantRead {
  readonly grant: Grant;
  /** With faults the grant is not to be used. Each has its place and what was expected, never the value there. */
  readonly faults: readonly string[];
}

/** The rights of a token without the claim, where JWT_DEFAULT gives none. */
export const NO_RIGHTS: Grant = { rights: rightsOf({ resources: [], actions: [] }), expires: Infinity };

const check = bodyCheck(GRANT);

/**
 * Reads what the value at `at` of a JSON text grants: the members of a key in API_KEYS_FILE except name and sha256.
 * It must name resources and actions, so nothing opens by omission.
 */
export function readGrant(value: unknown, at: readonly string[], body: JsonBody): GrantRead {
  const place = pointer(at);
  const faults: string[] = [];
  const fault = (under: string, expected: string) =>
    faults.push(`${under === '' ? '/' : under}: ${expected}`);
  const own = body.faults.filter((one) => `${one.pointer}/`.startsWith(`${place}/`));
  const below = own.map((one): BodyFault => ({ ...one, pointer: one.pointer.slice(place.length) }));
  try {
    const given = check({ value, numbers: body.numbers, faults: below });
    const grant = grantOf(given, at, body, (member, expected) => fault(pointer([member]), expected));
    return { grant, faults };
  } catch (error) {
    for (const one of faultsIn(error, 'The text')) fault(one.pointer, one.detail);
    return { grant: NO_RIGHTS, faults };
  }
}

/** Reads the text of JWT_DEFAULT. */
export function readGrantText(text: string): GrantRead {
  try {
    const body = parseJson(Buffer.from(text));
    return readGrant(body.value, [], body);
  } catch (error) {
    return { grant: NO_RIGHTS, faults: faultsIn(error, 'The text').map(({ detail }) => detail) };
  }
}
