import type { Client } from '../../access/admission.ts';
import { scopeOf, type Scope } from '../../access/rights.ts';
import { AppError, Faults, storeUnfit } from '../../base/errors.ts';
import { getOrMake } from '../../base/get-or-make.ts';
import { pathFault, type Selection } from '../../rows/selection.ts';
import { Decimal128 } from '../../store/values/bson.ts';
import { KEY } from '../../store/bookmark.ts';
import { compareValues } from '../../store/values/order.ts';
import { ScopedCollection } from '../../store/scope/scoped-collection.ts';
import type { Equality } from '../../store/store.ts';
import { keyOr, splitName, type Filters } from './grammar.ts';
import { chosen } from './not-indexed.ts';
import { chooseIndex, isRefusal } from './planner.ts';
import type { Reading } from './kinds.ts';
import { candidates } from './readings.ts';
import { indexesOf, type Resource } from './resource.ts';

/** What a client may ask of a resource: all of it, or the part that its key opens. */
export function resourceFor(resource: Resource, { key }: Pick<Client, 'key'>): Resource {
  const scope = key && scopeOf(key.rights, resource.name);
  if (!scope) return key && key.rights.scopes.size > 0 ? terse(resource) : resource;
  try {
    return scopedResource(resource, scope);
  } catch (error) {
    if (!(error instanceof Faults)) throw error;
    // The key was checked when it was read. The declaration of the resource has changed since.
    throw storeUnfit('The rights of the key do not fit the resource any more.', error);
  }
}

/** What a key does not open of a resource, in words. null: it opens all rows, and all fields that are shown. */
export function closedTo({ key }: Pick<Client, 'key'>, { name, shown }: Resource): string | null {
  const scope = key && scopeOf(key.rights, name);
  if (!scope) return null;
  if (scope.where.length > 0) return 'only some rows';
  return scope.hide.some((path) => !shown.hides(path)) ? 'not all fields' : null;
}

const terseOnes = new WeakMap<Resource, Resource>();

/** The whole of a resource for a key that opens only a part of another one: names of collections are for the operator. */
function terse(resource: Resource): Resource {
  return getOrMake(terseOnes, resource, () => ({ ...resource, isTerse: true }));
}

/** A part is kept as long as the rights that open it. */
const parts = new WeakMap<Resource, WeakMap<Scope, Resource>>();

/**
 * The part of a resource that a key opens, as a resource of its own: its rows have the values of `where`, and hidden
 * fields are as those that the operator hides. Values come from the key alone and are read once, here. Throws Faults.
 */
export function scopedResource(resource: Resource, scope: Scope): Resource {
  const own = getOrMake(parts, resource, () => new WeakMap<Scope, Resource>());
  return getOrMake(own, scope, () => makeScoped(resource, scope));
}

function makeScoped(resource: Resource, scope: Scope): Resource {
  const { hide } = scope;
  const faults: string[] = [];
  const shown = hiding(resource.shown, hide, faults);
  faults.push(...usedFaults(hide, resource));
  const where = scope.where.map(([path, text]) => valueOf(path, text, resource, faults));
  const paths = where.map(({ path }) => path);
  if (new Set(paths).size < paths.length) faults.push('where names a path twice');
  if (faults.length > 0) throw new Faults(faults);
  const rows = new ScopedCollection(
    resource.rows,
    { where, hide },
    async (equals, { sort, direction }, signal) => {
      const asked = { equals, ranges: [], sort: { path: sort, direction } };
      return chosen(asked, await indexesOf(part, signal), part).index;
    },
  );
  const part: Resource = { ...resource, rows, shown, scope: { where, given: scope } };
  return part;
}

/**
 * Checks that a part can be served. Rejects with Faults. Resolves with why it has no changes; null: it has, or its store
 * is away, when nothing is known against it.
 */
export async function checkScope(resource: Resource, scope: Scope): Promise<string | null> {
  const part = scopedResource(resource, scope);
  await checkIndexes(part);
  const refusal = part.rows.changes?.refusal;
  return refusal ? whileAway(refusal) : 'Its store has no changes.';
}

/** Rejects with Faults when no index serves a part. While the store is away that is not known. */
export async function checkIndexes(part: Resource): Promise<void> {
  const equals = (part.scope?.where ?? []).map(({ path }) => path);
  const indexes = equals.length > 0 && (await whileAway((signal) => indexesOf(part, signal)));
  const choice = indexes && chooseIndex({ equals, ranges: [] }, indexes);
  if (!choice || !isRefusal(choice)) return;
  const line = choice.remedy && part.indexLine(choice.remedy);
  throw new Faults([line ? `no index answers where; this one would: ${line}` : `where: ${choice.reason}`]);
}

/** How long reading keys waits for the store. Milliseconds. */
const LOOK_MS = 10_000;

/** What a look finds. Null while the store is away: no query is answered that no index serves, so nothing is lost. */
async function whileAway<T>(look: (signal: AbortSignal) => Promise<T>): Promise<T | null> {
  const signal = AbortSignal.timeout(LOOK_MS);
  try {
    return await look(signal);
  } catch (error) {
    if (error instanceof AppError || signal.aborted) return null;
    throw error;
  }
}

/** A selection without what a key hides. Adds to `faults` what cannot be hidden. */
function hiding(shown: Selection, hide: readonly string[], faults: string[]): Selection {
  try {
    return shown.hiding(hide);
  } catch (error) {
    if (!(error instanceof RangeError)) throw error;
    faults.push(`hide: ${error.message}`);
    return shown;
  }
}

/** The parameters of a closed form need their fields. */
function usedFaults(hide: readonly string[], { name, form }: Resource): readonly string[] {
  const used = (form.closed ?? []).map(({ to }) => splitName(to).path);
  return hide
    .filter((path) => used.some((one) => path === one || path.startsWith(`${one}.`)))
    .map((path) => `hide: ${path} cannot be hidden: queries of ${name} use it`);
}

function valueOf(name: string, text: string, { kinds }: Pick<Resource, 'kinds'>, faults: string[]): Equality {
  const path = keyOr(name);
  const fault = path === KEY || path.startsWith(`${KEY}.`) ? 'is the key' : pathFault(path);
  if (fault !== undefined) faults.push(`where: ${JSON.stringify(name)} ${fault}`);
  try {
    const all = candidates(path, text, kinds);
    if (all.every(isBeside)) faults.push(`where: no row can have the value of ${name} exactly`);
    // A declared field says whether a number is a decimal.
    const isDecimal = ({ value }: Reading) => value instanceof Decimal128 === (kinds.get(path) === 'decimal');
    const declared = kinds.has(path) ? all.filter(isDecimal) : [];
    const [only, ...others] = declared.length > 0 ? declared : all;
    if (others.length > 0)
      faults.push(
        `where: the value of ${name} can be of several types: write ${[only, ...others].map((one) => one?.spelling).join(' or ')}`,
      );
    return { path, value: only?.value };
  } catch (error) {
    if (!(error instanceof AppError)) throw error;
    faults.push(`where: ${error.message}`);
    return { path, value: null };
  }
}

/** What a query asks of a part: without the values that every row of it has. */
export interface FiltersInScope {
  readonly given: Filters;
  readonly where: readonly Equality[];
  /** Whether the query names another value than the part has. No row matches then. */
  readonly isEmpty: boolean;
  /** Whether it names a path that is hidden. It is refused then as one that is unknown. */
  readonly isRefused: boolean;
}

/** Takes the values of a part out of what a query asks. A resource that is no part has none. */
export function withinScope(
  given: Filters,
  sort: string | undefined,
  resource: Pick<Resource, 'scope' | 'shown' | 'kinds'>,
): FiltersInScope {
  const { scope, shown, kinds } = resource;
  if (!scope) return { given, where: [], isEmpty: false, isRefused: false };
  const named = [sort, given.among?.path].filter((path) => path !== undefined);
  const asked = [...given.equals.keys(), ...given.bounds.keys(), ...named];
  const isRefused = asked.some((path) => !shown.leavesWhole(path));
  const equals = new Map(given.equals);
  let { among } = given;
  let isEmpty = false;
  for (const { path, value } of isRefused ? [] : scope.where) {
    const text = equals.get(path);
    const texts = among?.path === path ? among.texts : text === undefined ? [] : [text];
    if (texts.length === 0) continue;
    if (among?.path === path) among = undefined;
    equals.delete(path);
    const readings = texts.flatMap((one) => candidates(path, one, kinds)).filter((one) => !isBeside(one));
    isEmpty ||= !readings.some((reading) => compareValues(reading.value, value) === 0);
  }
  const { bounds } = given;
  return { given: { equals, bounds, ...(among && { among }) }, where: scope.where, isEmpty, isRefused };
}

/** Whether no row has the value that a text stands for, as it is a bound alone. */
function isBeside({ isBetween, isNear }: Reading): boolean {
  return isBetween === true || isNear === true;
}
