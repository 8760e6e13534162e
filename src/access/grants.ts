import { AppError, type BodyFault } from '../errors.ts';
import { parseJson, type JsonBody } from '../input/body-json.ts';
import { pointer } from '../input/json-scan.ts';
import { bodyCheck } from '../input/validate.ts';
import { GRANT, grantOf } from './keys-json.ts';
import type { Key } from './keys.ts';

/** What a claim or JWT_DEFAULT grants: a key without its name and digest. */
export type Grant = Omit<Key, 'name' | 'digest' | 'issuer'>;

export interface GrantRead {
  readonly grant: Grant;
  /** With faults the grant is not to be used. Each has its place and what was expected, never the value there. */
  readonly faults: readonly string[];
}

/** The rights of a token without the claim, where JWT_DEFAULT gives none. */
export const NO_RIGHTS: Grant = grantOf(
  { resources: [], actions: [] },
  [],
  { numbers: new Map() },
  () => undefined,
);

const check = bodyCheck(GRANT);

/**
 * Reads what the value at `at` of a JSON text grants: the members of a key in API_KEYS_FILE except name and sha256.
 * It must name resources and actions, so nothing opens by omission.
 */
export function readGrant(value: unknown, at: readonly string[], body: JsonBody): GrantRead {
  const place = pointer(at);
  const faults: string[] = [];
  const fault = (under: string, detail: string) =>
    faults.push(`${under === '' ? '/' : under}: ${detail.replace(/; got .*$/s, '')}`);
  const own = body.faults.filter((one) => one.pointer === place || one.pointer.startsWith(`${place}/`));
  try {
    const given = check({ value, numbers: body.numbers, faults: own.map((one) => below(one, place)) });
    const grant = grantOf(given, at, body, (member, expected) => fault(pointer([member]), expected));
    return { grant, faults };
  } catch (error) {
    if (!(error instanceof AppError)) throw error;
    for (const one of error.errors ?? [{ pointer: '', detail: error.message }])
      fault(one.pointer, one.detail);
    return { grant: NO_RIGHTS, faults };
  }
}

function below({ pointer: whole, detail }: BodyFault, place: string): BodyFault {
  return { pointer: whole.slice(place.length), detail };
}

/** Reads the text of JWT_DEFAULT. */
export function readGrantText(text: string): GrantRead {
  try {
    const body = parseJson(Buffer.from(text));
    return readGrant(body.value, [], body);
  } catch (error) {
    if (!(error instanceof AppError)) throw error;
    return { grant: NO_RIGHTS, faults: [error.message.replace('The request body', 'The text')] };
  }
}
