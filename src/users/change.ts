import { invalidBody } from '../input/validate.ts';
import { metadataFault, type User, type UserBody, type UserPatch } from './user.ts';

/** A user made of a body, at a time in milliseconds. */
export function createUser(id: string, body: UserBody, now: number): User {
  const time = new Date(now).toISOString();
  return { id, ...body, createdAt: time, updatedAt: time };
}

/** The user with all that a client may say of it replaced: what the body leaves out is not kept. */
export function replaceUser({ id, createdAt, updatedAt }: User, body: UserBody, now: number): User {
  return { id, ...body, createdAt, updatedAt: laterThan(updatedAt, now) };
}

/**
 * The user with a merge patch applied (RFC 7396); null when that changes nothing. AppError `invalid-body` when what comes
 * out is no user.
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

/** Object.fromEntries defines properties, so that no name can reach a prototype. */
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

/** Grows with every change of a user, also when the clock stands still or goes back: so every state has its own tag. */
function laterThan(time: string, now: number): string {
  return new Date(Math.max(now, Date.parse(time) + 1)).toISOString();
}
