import Negotiator from 'negotiator';
import { AppError } from '../errors.ts';
import type { Request } from '../engine/edge.ts';

/** Few clients, few headers: the answers are kept. The bound keeps a hostile client from filling memory. */
const REMEMBERED = 256;

/** Since negotiator 1.0, which its types do not know yet. */
interface NegotiatorWithPreference {
  encoding(available: readonly string[], options: { preferred: readonly string[] }): string | undefined;
}

/**
 * The content coding for an answer by Accept-Encoding (RFC 9110, 12.5.3), `offered` in our order among equal q-values.
 * `identity` when the client names nothing we have; null when it refuses identity as well (the answer is then 406).
 */
export function encodingNegotiator<T extends string>(
  offered: readonly T[],
): (header: string | undefined) => T | 'identity' | null {
  const available: readonly string[] = [...offered, 'identity'];
  const choose = remember((header) => {
    const negotiator = new Negotiator({ headers: { 'accept-encoding': header } }) as NegotiatorWithPreference;
    return (negotiator.encoding(available, { preferred: offered }) as T | 'identity' | undefined) ?? null;
  });
  return (header) => (header === undefined ? 'identity' : choose(header));
}

/**
 * Picks one of the media types offered, the first one among equals. AppError `not-acceptable` names what is offered.
 */
export function mediaTypeNegotiator(offered: readonly string[]): (request: Request) => string {
  const choose = remember(
    (header) => new Negotiator({ headers: { accept: header } }).mediaType([...offered]) ?? null,
  );
  const fallback = offered[0] ?? '';
  return ({ headers: { accept = '' } }) => {
    const type = accept.trim() === '' ? fallback : choose(accept); // RFC 9110, 12.5.1: an empty list prefers nothing
    if (type === null) {
      throw new AppError('not-acceptable', `Accept names none of ${offered.join(', ')}.`);
    }
    return type;
  };
}

function remember<T>(decide: (header: string) => T): (header: string) => T {
  const known = new Map<string, T>();
  return (header) => {
    const seen = known.get(header);
    if (seen !== undefined) return seen;
    const decided = decide(header);
    if (known.size >= REMEMBERED) known.clear();
    known.set(header, decided);
    return decided;
  };
}
