import { reasonOf } from '../base/error-reason.ts';
import { AppError } from '../base/errors.ts';
import type { Request } from '../engine/edge.ts';
import { DUPLICATE, scanJson, type JsonScan } from './json-scan.ts';
import { quote } from './query.ts';

/** A body's value, and its faults that do not depend on a schema. */
export interface JsonBody extends JsonScan {
  readonly value: unknown;
}

/** The response header that names the media types a method accepts: RFC 5789, 3.1; W3C LDP 7.1; RFC 9110, 12.5.1. */
const ACCEPT_HEADERS: Readonly<Record<string, string>> = { PATCH: 'accept-patch', POST: 'accept-post' };

export function acceptHeader(method: string, types: readonly string[]): Record<string, string> {
  return { [ACCEPT_HEADERS[method] ?? 'accept']: types.join(', ') };
}

/**
 * Reads a request's body as JSON. Throws AppError `unsupported-media-type` (with the headers that name what is accepted),
 * `malformed-json` or `invalid-body`. Of a name that an object has twice, the last value counts, as in JavaScript.
 */
export async function readJsonBody(request: Request, types: readonly string[]): Promise<JsonBody> {
  checkCoding(request);
  checkType(request, types);
  const body = parseJson(await request.body());
  return { ...body, faults: body.faults.filter(({ detail }) => detail !== DUPLICATE) };
}

/** Parses a JSON text as received. Throws AppError `malformed-json` or `invalid-body`. `mostValues`: see scanJson. */
export function parseJson(bytes: Uint8Array, mostValues?: number): JsonBody {
  if (bytes.length === 0) throw new AppError('malformed-json', 'The request body is empty; expected JSON.');
  const text = decode(bytes);
  return { value: parsed(text), ...scanJson(text, mostValues) };
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new AppError('malformed-json', `The request body must be JSON; got: ${reasonOf(error)}.`, {
      cause: error,
    });
  }
}

/** RFC 9110, 8.4 and 12.5.3: an unknown coding is refused, and the answer names the known one. */
function checkCoding({ headers }: Request): void {
  const coding = headers['content-encoding'] ?? 'identity';
  if (['', 'identity'].includes(coding.trim().toLowerCase())) return;
  throw new AppError(
    'unsupported-media-type',
    `The request body has the Content-Encoding ${quote(coding)}; expected none.`,
    { headers: { 'accept-encoding': 'identity' } },
  );
}

function checkType({ method, headers }: Request, types: readonly string[]): void {
  const given = headers['content-type'];
  const [, type = '', parameters = ''] = /^\s*([^\s;,]+)\s*((?:;[^,]*)?)$/.exec(given ?? '') ?? [];
  const [, charset = 'utf-8'] = /;\s*charset\s*=\s*"?([^\s";]*)/i.exec(parameters) ?? [];
  if (types.includes(type.toLowerCase()) && /^utf-?8$/i.test(charset)) return;
  throw new AppError(
    'unsupported-media-type',
    `Content-Type must be ${types.join(' or ')} in UTF-8; got ${given === undefined ? 'none' : quote(given)}.`,
    { headers: acceptHeader(method, types) },
  );
}

/** Decodes UTF-8. A byte order mark at the start is removed (RFC 8259, 8.1). */
function decode(bytes: Uint8Array): string {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch (error) {
    throw new AppError('malformed-json', 'The request body is not UTF-8.', { cause: error });
  }
}
