import type { Scope } from '../access/rights.ts';
import { hiding, ScopeFaults } from '../access/scope-faults.ts';
import { AppError } from '../errors.ts';
import { pathFault } from '../rows/selection.ts';
import { BSON } from '../store/bson.ts';
import { KEY } from '../store/bookmark.ts';
import type { Index } from '../store/indexes.ts';
import type { Equality } from '../store/store.ts';
import { keyOr, splitName, type Given } from './grammar.ts';
import { scopedCollection } from '../store/scoped-rows.ts';
import { KindTable } from './kind-table.ts';
import { chooseIndex, isRefusal } from './planner.ts';
import { candidates } from './readings.ts';
import { indexesOf, type Resource } from './resource.ts';

/**
 * The part of a resource that a key opens, as a resource of its own: its rows have the values of `where`, and hidden
 * fields are as those that the operator hides. Values come from the key alone and are read once, here. Throws
 * ScopeFaults.
 */
export function scopedResource(resource: Resource, { where, hide }: Scope): Resource {
  const faults: string[] = [];
  const shown = hiding(resource.shown, hide, faults);
  faults.push(...usedFaults(hide, resource));
  const values = where.map(([path, text]) => valueOf(path, text, resource, faults));
  const paths = values.map(({ path }) => path);
  if (new Set(paths).size < paths.length) faults.push('where names a path twice');
  if (faults.length > 0) throw new ScopeFaults(faults);
  const rows = scopedCollection(resource.rows, { where: values, hide }, async (plan, signal) => {
    const choice = chooseIndex(
      { equals: paths, ranges: [], sort: { path: KEY, direction: plan.direction } },
      await indexesOf(part, signal),
    );
    if (isRefusal(choice)) throw new AppError('not-indexed', 'No index answers this query.');
    const equals = choice.equals.flatMap((path) => values.filter((one) => one.path === path));
    return { ...plan, index: choice.index, equals };
  });
  const part: Resource = {
    ...resource,
    rows,
    found: new KindTable(rows, values),
    streams: resource.openStreams(rows),
    shown,
    scope: { where: values },
  };
  return part;
}

/** The parameters of a closed form need their fields. */
function usedFaults(hide: readonly string[], { name, form }: Resource): readonly string[] {
  const used = (form.closed ?? []).map(({ to }) => splitName(to).path);
  return hide
    .filter((path) => used.some((one) => path === one || path.startsWith(`${one}.`)))
    .map((path) => `hide: ${path} cannot be hidden: queries of ${name} use it`);
}

/**
 * The indexes of a part. Rejects with ScopeFaults when none serves it. While the store is away it has none: no query is
 * answered that no index serves, so nothing is lost.
 */
export async function scopedIndexes(scoped: Resource): Promise<readonly Index[]> {
  const equals = (scoped.scope?.where ?? []).map(({ path }) => path);
  const indexes = await lookAt(scoped);
  if (!indexes) return [];
  if (!isRefusal(chooseIndex({ equals, ranges: [] }, indexes))) return indexes;
  throw new ScopeFaults([`no index answers where; this one would: ${scoped.indexLine([...equals, KEY])}`]);
}

/** How long the start waits for the indexes of a collection. Milliseconds. */
const LOOK_MS = 10_000;

async function lookAt(scoped: Resource): Promise<readonly Index[] | null> {
  const signal = AbortSignal.timeout(LOOK_MS);
  try {
    return await indexesOf(scoped, signal);
  } catch (error) {
    if (error instanceof AppError || signal.aborted) return null;
    throw error;
  }
}

function valueOf(name: string, text: string, { kinds }: Pick<Resource, 'kinds'>, faults: string[]): Equality {
  const path = keyOr(name);
  const fault = path === KEY || path.startsWith(`${KEY}.`) ? 'is the key' : pathFault(path);
  if (fault !== undefined) faults.push(`where: ${JSON.stringify(name)} ${fault}`);
  try {
    const [only, ...others] = candidates(path, text, kinds);
    if (others.length > 0)
      faults.push(
        `where: the value of ${name} can be of several types: write ${[only, ...others].map((one) => one?.spelling).join(' or ')}`,
      );
    return { path, value: only?.value, isOfPart: true };
  } catch (error) {
    if (!(error instanceof AppError)) throw error;
    faults.push(`where: ${error.message}`);
    return { path, value: null };
  }
}

/** What a query asks of a part: without the values that every row of it has. */
export interface GivenInScope {
  readonly given: Given;
  readonly where: readonly Equality[];
  /** Whether the query names another value than the part has. No row matches then. */
  readonly isEmpty: boolean;
  /** Whether it names a path that is hidden. It is refused then as one that is unknown. */
  readonly isRefused: boolean;
}

/** Takes the values of a part out of what a query asks. A resource that is no part has none. */
export function withinScope(
  given: Given,
  sort: string | undefined,
  resource: Pick<Resource, 'scope' | 'shown' | 'kinds'>,
): GivenInScope {
  const { scope, shown, kinds } = resource;
  if (!scope) return { given, where: [], isEmpty: false, isRefused: false };
  const asked = [...given.equals.keys(), ...given.bounds.keys(), ...(sort === undefined ? [] : [sort])];
  const isRefused = asked.some((path) => !shown.leavesWhole(path));
  const equals = new Map(given.equals);
  let isEmpty = false;
  for (const { path, value } of isRefused ? [] : scope.where) {
    const text = equals.get(path);
    if (text === undefined) continue;
    equals.delete(path);
    isEmpty ||= !candidates(path, text, kinds).some((reading) => isSame(reading.value, value));
  }
  return { given: { ...given, equals }, where: scope.where, isEmpty, isRefused };
}

function isSame(a: unknown, b: unknown): boolean {
  return Buffer.compare(BSON.serialize({ a }), BSON.serialize({ a: b })) === 0;
}
