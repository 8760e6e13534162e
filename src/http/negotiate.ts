import Negotiator from 'negotiator';
import { AppError } from '../base/errors.ts';
import type { Request } from '../engine/edge.ts';
import { getOrMake } from '../base/get-or-make.ts';
import { RecentMap } from '../base/recent-map.ts';

/** The bound keeps a hostile client from filling memory. */
const REMEMBERED = 256;

/** negotiator has this since 1.0; its types do not declare it yet. */
interface NegotiatorWithPreference {
  encoding(available: readonly string[], options: { preferred: readonly string[] }): string | undefined;
}

/**
 * Chooses a content coding by Accept-Encoding (RFC 9110, 12.5.3). The order of `offered` decides among equal q-values.
 * `identity`: the client names no coding that is offered. null: it refuses identity as well (406).
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

/** All text is UTF-8, also that of types which do not say so. */
const UTF_8 = /;[ \t]*charset=(?:utf-?8|"utf-?8")(?=[ \t;,]|$)/gi;

/** Chooses a media type by Accept, the first among equals. Throws AppError `not-acceptable`, which names those offered. */
export function mediaTypeNegotiator(offered: readonly string[]): (request: Request) => string {
  const choose = remember((header) => {
    const accept = header.replace(UTF_8, '');
    return new Negotiator({ headers: { accept } }).mediaType([...offered]) ?? null;
  });
  const fallback = offered[0] ?? '';
  return ({ headers: { accept = '' } }) => {
    const type = accept.trim() === '' ? fallback : choose(accept); // RFC 9110, 12.5.1: an empty list prefers nothing
    if (type === null) {
      throw new AppError('not-acceptable', `Accept allows none of ${offered.join(', ')}.`);
    }
    return type;
  };
}

function remember<T>(decide: (header: string) => T): (header: string) => T {
  const known = new RecentMap<T>(REMEMBERED);
  return (header) => getOrMake(known, header, () => decide(header));
}
