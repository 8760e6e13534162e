import { AppError } from '../base/errors.ts';
import type { Reply, Request } from '../engine/edge.ts';
import { quote } from '../input/query.ts';

/** Throws AppError `precondition-failed` if it does not hold. `etag` null: the resource has no strong tag. */
type Precondition = (state: { readonly etag: string | null } | 'missing') => void;

/** `*`, or the entity tags of a list. */
type Tags = '*' | readonly string[];

/** entity-tag of RFC 9110, 8.8.3, with the separators around it in a list (5.6.1). Header text is latin1. */
const TAG = /[ \t,]*((?:W\/)?"[\x21\x23-\x7e\x80-\xff]*")[ \t]*(?=,|$)/y;

/**
 * Reads the conditions that If-Match and If-None-Match set for a write (RFC 9110, 13.1.1, 13.1.2, in the order of
 * 13.2.2). Tags of coded answers count as those of the uncoded ones. Throws AppError `invalid-header` when a header
 * is malformed: ignoring it would write without the condition that the client relies on.
 */
export function readPrecondition({ headers }: Request): Precondition {
  const match = readTags('If-Match', headers['if-match']);
  const noneMatch = readTags('If-None-Match', headers['if-none-match']);
  return (state) => {
    if (match !== null && !matches(match, state, isSameStrongly)) throw failed('If-Match', match, state);
    if (noneMatch !== null && matches(noneMatch, state, isSameWeakly))
      throw failed('If-None-Match', noneMatch, state);
  };
}

/** Headers that a 304 does not repeat: its client already has the body that they describe. */
const ABOUT_THE_BODY: ReadonlySet<string> = new Set([
  'accept-ranges',
  'content-disposition',
  'content-encoding',
  'content-type',
  'repr-digest',
]);

/**
 * Applies the conditions of a GET or HEAD, in the order of RFC 9110, 13.2.2. Throws AppError `precondition-failed` when
 * If-Match does not name the ETag (strong comparison: a weak tag never matches), and `invalid-header`. Returns a 304
 * when If-None-Match names it (weak comparison), with `headersSent`: those of the 200 as sent (15.4.5). Tags are of the
 * content, whatever its coding. A reply without a tag has no conditions.
 */
export function conditional(
  { method, headers }: Request,
  reply: Reply,
  headersSent: (reply: Reply) => Reply['headers'],
): Reply {
  const { etag } = reply.headers;
  if ((method !== 'GET' && method !== 'HEAD') || reply.status !== 200 || etag === undefined) return reply;
  const match = readTags('If-Match', headers['if-match']);
  if (match !== null && !matches(match, { etag }, isSameStrongly)) throw failed('If-Match', match, { etag });
  const noneMatch = readTags('If-None-Match', headers['if-none-match']);
  if (noneMatch === null || !matches(noneMatch, { etag }, isSameWeakly)) return reply;
  const repeated = Object.entries(headersSent(reply)).filter(([name]) => !ABOUT_THE_BODY.has(name));
  return { ...reply, status: 304, headers: Object.fromEntries(repeated), body: { kind: 'none' } };
}

/** A tag without its weakness mark and without the coding suffix that applyCoding adds. */
function opaque(tag: string): string {
  return tag.replace(/^W\//, '').replace(/^"(.*?)(-(br|gzip|zstd))?"$/, '$1');
}

type State = Parameters<Precondition>[0];

function matches(tags: Tags, state: State, isSame: (tag: string, etag: string) => boolean): boolean {
  if (state === 'missing') return false;
  const { etag } = state;
  return tags === '*' || (etag !== null && tags.some((tag) => isSame(tag, etag)));
}

/** RFC 9110, 8.8.3.2. */
function isSameStrongly(tag: string, etag: string): boolean {
  return !tag.startsWith('W/') && !etag.startsWith('W/') && isSameWeakly(tag, etag);
}

function isSameWeakly(tag: string, etag: string): boolean {
  return opaque(tag) === opaque(etag);
}

function readTags(name: string, header: string | undefined): Tags | null {
  if (header === undefined) return null;
  if (header.trim() === '*') return '*';
  const tags: string[] = [];
  TAG.lastIndex = 0;
  for (let at = 0; at < header.length; at = TAG.lastIndex) {
    if (/^[ \t,]*$/.test(header.slice(at))) break;
    const tag = TAG.exec(header)?.[1];
    if (tag === undefined) throw malformed(name, header);
    tags.push(tag);
  }
  if (tags.length === 0) throw malformed(name, header);
  return tags;
}

function malformed(name: string, header: string): AppError {
  const detail = `${name} must be * or a list of ETags in double quotes; got ${quote(header)}.`;
  return new AppError('invalid-header', detail);
}

function failed(name: string, tags: Tags, state: State): AppError {
  const asked = tags === '*' ? '*' : quote(tags.join(', '));
  return new AppError(
    'precondition-failed',
    `${name} is ${asked}, but the resource ${now(name, tags, state)}.`,
  );
}

/** Without the tag of now: it is made from the content, which a key that may only write does not get to know. */
function now(name: string, tags: Tags, state: State): string {
  if (state === 'missing') return 'does not exist';
  if (name === 'If-None-Match') return tags === '*' ? 'exists' : 'has one of these ETags';
  return state.etag === null ? 'has no ETag' : 'has another ETag';
}
