import { createHash } from 'node:crypto';
import { AppError } from '../base/errors.ts';

/** What a key may do with the resources that it opens. `metrics`: figures of the whole server. */
export const ACTIONS = ['read', 'stream', 'export', 'changes', 'users:write', 'metrics'] as const;
type Action = (typeof ACTIONS)[number];
/** What a route asks of a key. `any`: every key has it. */
export type Right = Action | 'any';

/** The part of one resource that a key opens. */
export interface Scope {
  /** The values that all its rows have, by path, each written as in a URL. Empty: rows of any values. */
  readonly where: readonly (readonly [path: string, text: string])[];
  /** The paths of fields that are not shown. */
  readonly hide: readonly string[];
}

export interface Rights {
  /** null: every resource, also one that is declared later. */
  readonly resources: ReadonlySet<string> | null;
  readonly actions: ReadonlySet<Action>;
  /** Resources of which the key opens a part only. */
  readonly scopes: ReadonlyMap<string, Scope>;
  /** Whether the key names the action `changes`. A key that names no actions has it without asking for it. */
  readonly namesChanges: boolean;
  /** The same for the same rights. Empty: the key opens everything. */
  readonly hash: string;
}

/** The members of a key that decide on its rights. A missing one sets no limit. */
interface RightsEntry {
  readonly resources?: readonly string[] | undefined;
  readonly actions?: readonly Action[] | undefined;
  readonly where?: Readonly<Record<string, Readonly<Record<string, string>>>> | undefined;
  readonly hide?: Readonly<Record<string, readonly string[]>> | undefined;
}

/**
 * Nothing opens by omission: a key with `where` or `hide` opens only the resources that it names, and one that does not
 * open every resource has `metrics`, which names all of them, only by name.
 */
export function rightsOf({ resources, actions, where = {}, hide = {} }: RightsEntry): Rights {
  const scoped = [...new Set([...Object.keys(where), ...Object.keys(hide)])].sort();
  const opened = resources ?? (scoped.length > 0 ? scoped : null);
  const scopes = new Map(
    scoped.map((name) => [
      name,
      {
        where: Object.entries(own(where, name) ?? {}).sort(byName),
        hide: [...(own(hide, name) ?? [])].sort(),
      },
    ]),
  );
  const allowed = actions ?? ACTIONS.filter((action) => action !== 'metrics' || opened === null);
  const isWhole = opened === null && actions === undefined;
  const text = JSON.stringify([opened && [...opened].sort(), [...allowed].sort(), [...scopes]]);
  return {
    resources: opened && new Set(opened),
    actions: new Set(allowed),
    scopes,
    namesChanges: actions?.includes('changes') === true,
    hash: isWhole ? '' : createHash('sha256').update(text).digest('hex').slice(0, 32),
  };
}

function own<T>(object: Readonly<Record<string, T>>, name: string): T | undefined {
  return Object.hasOwn(object, name) ? object[name] : undefined;
}

function byName([a]: readonly [string, unknown], [b]: readonly [string, unknown]): number {
  return a < b ? -1 : a > b ? 1 : 0;
}

export const ALL_RIGHTS = rightsOf({});

/** Whether a key opens a resource, in whole or in part. null: what belongs to no resource is open to every key. */
export function opens({ resources }: Pick<Rights, 'resources'>, resource: string | null): boolean {
  return resource === null || resources === null || resources.has(resource);
}

/** The part of a resource that a key opens. Undefined: the whole of it. */
export function scopeOf({ scopes }: Rights, resource: string | null): Scope | undefined {
  return resource === null ? undefined : scopes.get(resource);
}

/** Whether rights that followed others still allow what was begun with those on a resource. */
export function stillAllow(
  now: Rights,
  before: Rights,
  right: Right | undefined,
  resource: string | null,
): boolean {
  if (!opens(now, resource)) return false;
  if (right !== undefined && right !== 'any' && !now.actions.has(right)) return false;
  if (resource === null) return now.hash === before.hash;
  return JSON.stringify(scopeOf(now, resource)) === JSON.stringify(scopeOf(before, resource));
}

/** The error for a request that the key has no right to. It names the right. */
export function forbidden(action: Action, resource: string | null): AppError {
  const of = resource === null ? '' : ` for ${resource}`;
  return new AppError('forbidden', `The key lacks the right ${action}${of}.`);
}
