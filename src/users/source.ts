import type { Client } from '../access/admission.ts';
import { scopeOf, type Scope } from '../access/rights.ts';
import { ScopeFaults } from '../access/scope-faults.ts';
import { storeUnfit } from '../errors.ts';
import { whileAway } from '../resources/query/part.ts';
import { chooseIndex, isRefusal } from '../resources/query/planner.ts';
import { KEY } from '../store/bookmark.ts';
import type { Index } from '../store/indexes.ts';
import type { Records } from '../store/records.ts';
import { PartRows } from '../store/part-rows.ts';
import type { RowReader } from '../store/store.ts';
import { ALL_USERS, UserPart } from './part.ts';
import { USERS } from './row.ts';

/** The users that a client may see. */
export interface UserSource {
  readonly part: UserPart;
  readonly rows: RowReader;
}

/** A part is kept as long as the rights that open it. */
const parts = new WeakMap<Records, WeakMap<Scope, UserSource>>();

/** The users that a client may see: all, or those of the part that its key opens. */
export function usersFor(users: Records, { key }: Pick<Client, 'key'>): UserSource {
  const scope = key && scopeOf(key.rights, 'users');
  return scope ? usersInPart(users, scope) : { part: ALL_USERS, rows: users };
}

/** The users of a part. Throws ScopeFaults when its values are none of users. */
export function usersInPart(users: Records, scope: Scope): UserSource {
  const own = parts.get(users) ?? new WeakMap<Scope, UserSource>();
  parts.set(users, own);
  const source = own.get(scope) ?? makePart(users, scope);
  own.set(scope, source);
  return source;
}

function makePart(users: Records, scope: Scope): UserSource {
  const part = new UserPart(scope);
  const { where } = part;
  const rows = new PartRows(users, { where, hide: scope.hide }, async (_paths, _plan, signal) => {
    const choice = choose(where, await users.indexes(signal));
    if (!isRefusal(choice)) return choice.index;
    throw storeUnfit('The index by which the key reads users is gone.', new Error(choice.reason));
  });
  return { part, rows };
}

/** Rejects with ScopeFaults when no index answers the values of a part. While the store is away that is not known. */
export async function checkUsers(users: Records, scope: Scope): Promise<null> {
  const { where } = usersInPart(users, scope).part;
  const indexes = where.length === 0 ? null : await whileAway((signal) => users.indexes(signal));
  const fault = indexes && faultOf(where, indexes);
  if (typeof fault === 'string') throw new ScopeFaults([fault]);
  return null;
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
