import { v7 } from 'uuid';
import { AppError } from '../errors.ts';
import { quote } from '../input/query.ts';

/**
 * Unreserved characters of RFC 3986, 2.3, so an id appears in a URL as it is. `.` and `..` would be removed from a
 * path.
 */
const ID = /^(?!\.{1,2}$)[A-Za-z0-9._~-]{1,64}$/;

/** Whether a user can have this id. */
export function isUserId(text: string): boolean {
  return ID.test(text);
}

/** A new id: a UUID of version 7 (RFC 9562, 5.7), so users are in the order of their creation. */
export function newUserId(): string {
  return v7();
}

/** The error for an id that no user has or can have. */
export function noSuchUser(id: string): AppError {
  return new AppError('not-found', `No user has the id ${quote(id)}.`);
}
