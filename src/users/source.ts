import type { Scope } from '../access/rights.ts';
import { ScopeFaults } from '../access/scope-faults.ts';
import { AppError, storeUnfit } from '../errors.ts';
import { chooseIndex, isRefusal } from '../resources/planner.ts';
import { KEY } from '../store/bookmark.ts';
import type { Index } from '../store/indexes.ts';
import type { Records } from '../store/records.ts';
import { scopedCollection } from '../store/scoped-rows.ts';
import type { RowReader } from '../store/store.ts';
import { ALL_USERS, UserPart } from './part.ts';
import { USERS } from './row.ts';

/** How long reading the keys waits for the indexes of users. Milliseconds. */
const LOOK_MS = 10_000;

/** The users that a client may see. */
export interface UserSource {
  readonly part: UserPart;
  readonly rows: RowReader;
}

export function allUsers(users: RowReader): UserSource {
  return { part: ALL_USERS, rows: users };
}

/**
 * The users of a part. Rejects with ScopeFaults when its values are none of users, or when no index answers them. While
 * the store is away that is not known.
 */
export async function usersInPart(users: Records, scope: Scope): Promise<UserSource> {
  const part = new UserPart(scope);
  const { where } = part;
  if (where.length === 0) return { part, rows: users };
  const indexes = await lookAt(users);
  const fault = indexes && faultOf(where, indexes);
  if (typeof fault === 'string') throw new ScopeFaults([fault]);
  const rows = scopedCollection(users, { where, hide: scope.hide }, async (plan, signal) => {
    const choice = choose(where, await users.indexes(signal));
    if (isRefusal(choice))
      throw storeUnfit('The index by which the key reads users is gone.', new Error(choice.reason));
    const equals = choice.equals.flatMap((path) => where.filter((one) => one.path === path));
    return { ...plan, index: choice.index, equals };
  });
  return { part, rows };
}

/** The index that has the users of a part in order of id. */
function choose(where: UserPart['where'], indexes: readonly Index[]) {
  return chooseIndex({ equals: where.map(({ path }) => path), ranges: [] }, indexes);
}

function faultOf(where: UserPart['where'], indexes: readonly Index[]): string | null {
  const choice = choose(where, indexes);
  if (!isRefusal(choice)) return null;
  const { reason, remedy } = choice;
  if (!remedy) return `where: ${reason}`;
  const fields = remedy.filter((path) => path !== KEY).join(',');
  return `no index answers where; this one would: sluice index ${USERS.name} ${fields}`;
}

async function lookAt(users: Records): Promise<readonly Index[] | null> {
  const signal = AbortSignal.timeout(LOOK_MS);
  try {
    return await users.indexes(signal);
  } catch (error) {
    if (error instanceof AppError || signal.aborted) return null;
    throw error;
  }
}
