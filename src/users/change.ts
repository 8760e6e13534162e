import { invalidBody } from '../input/validate.ts';
import { metadataFault, type User, type UserBody, type UserPatch } from './user.ts';

/** A new user from a body. `now` is in milliseconds since 1970. */
export function createUser(id: string, body: UserBody, now: number): User {
  const time = new Date(now).toISOString();
  return { id, ...body, createdAt: time, updatedAt: time };
}

/** Replaces everything of a user that a client may set. What the body leaves out is removed. */
export function replaceUser({ id, createdAt, updatedAt }: User, body: UserBody, now: number): User {
  return { id, ...body, createdAt, updatedAt: laterThan(updatedAt, now) };
}

/**
 * Applies a merge patch (RFC 7396) to a user. Null when the patch changes nothing. AppError `invalid-body` when the
 * result is not a valid user.
 */
export function patchUser(user: User, patch: UserPatch, now: number): User | null {
  const { metadata: texts, ...rest } = patch;
  const { metadata: kept, ...before } = user;
  const metadata = texts === undefined ? kept : texts === null ? undefined : mergeTexts(kept, texts);
  const fault = metadata && metadataFault(metadata);
  if (fault) throw invalidBody([{ pointer: '/metadata', detail: fault }]);
  const same = Object.entries(rest).every(([name, value]) => before[name as keyof typeof before] === value);
  if (same && isSameTexts(kept, metadata)) return null;
  const updatedAt = laterThan(user.updatedAt, now);
  return { ...before, ...rest, ...(metadata !== undefined && { metadata }), updatedAt };
}

type Texts = Readonly<Record<string, string>>;

/** Object.fromEntries defines properties, so no name can reach a prototype. */
function mergeTexts(texts: Texts = {}, patch: Readonly<Record<string, string | null>>): Texts {
  const merged = new Map<string, string>(Object.entries(texts));
  for (const [name, value] of Object.entries(patch)) {
    if (value === null) merged.delete(name);
    else merged.set(name, value);
  }
  return Object.fromEntries(merged);
}

function isSameTexts(a: Texts | undefined, b: Texts | undefined): boolean {
  return JSON.stringify(a) === JSON.stringify(b);
}

/**
 * A time that grows with every change of a user, even when the clock stands still or goes back. So every state has its
 * own tag.
 */
function laterThan(time: string, now: number): string {
  return new Date(Math.max(now, Date.parse(time) + 1)).toISOString();
}
