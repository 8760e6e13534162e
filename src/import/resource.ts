import { CommandRefusal } from '../base/errors.ts';
import type { ResourceDeclaration } from '../resources/declarations.ts';
import { listsOf, locate } from '../resources/locate.ts';
import { kindsAt, type FieldKinds } from '../resources/query/kind-table.ts';
import { formsOf } from '../resources/query/not-indexed.ts';
import { KEY } from '../store/bookmark.ts';
import { BSON_TYPE } from '../store/values/bson-types.ts';
import type { Index } from '../store/indexes.ts';
import type { AddedIndex, Declaration, OwnedCollection, Store } from '../store/store.ts';
import { UsageError } from '../terminal/arguments.ts';
import { USERS } from '../users/row.ts';
import type { ImportTarget } from './command.ts';
import type { ImportedStore } from './import.ts';
import type { Kind } from './kinds.ts';
import type { Target } from './target.ts';

/**
 * Finds the resource of a name: one that the settings declare, else the collection of that name (see EXPOSE). `exists`: the
 * store has it. `fields`: the kinds that the settings declare. Throws UsageError when the name means two.
 */
export async function findResource(
  name: string,
  declared: readonly ResourceDeclaration[],
  store: Pick<Store, 'list'>,
) {
  const lists = listsOf(store, false);
  const plain: ResourceDeclaration = { name: undefined, collection: name, place: name };
  const located = await Promise.all(
    [...declared.filter(({ pattern }) => !pattern), plain].map((one) => locate(one, lists)),
  );
  const found = located.find((one) => typeof one !== 'string' && one.name === name) ?? located.at(-1);
  if (found === undefined || typeof found === 'string') throw new UsageError(found ?? name);
  const { database, collection } = found;
  const { collections } = await store.list(database);
  const place = { collection, ...(database !== undefined && { database }) };
  const declaration: Declaration = { name: found.name, indexes: [], ...place };
  const exists = collections.some((one) => one.collection === collection && !one.isUnfilled);
  return { declaration, exists, fields: found.fields };
}

/** The resource that an import writes, with its indexes. Throws UsageError when it may not be imported. */
export async function resourceTarget(
  into: Target,
  declared: readonly ResourceDeclaration[],
  store: Pick<Store, 'name' | 'list' | 'open'>,
  signal: AbortSignal,
): Promise<ImportTarget> {
  const { declaration, exists, fields } = await findResource(into.name, declared, store);
  if (declaration.collection === USERS.name && declaration.database === undefined)
    throw new UsageError(
      'the collection users has the users of the API of the server, and an import could write what is none. Send them to ' +
        'POST /api/users, or choose another name with --into',
    );
  const made: { rows?: OwnedCollection } = {};
  let found: Promise<OwnedCollection> | undefined;
  const setting = store.name === 'sqlite' ? undefined : `EXPOSE=${into.name}`;
  return {
    exists,
    ...(setting !== undefined && { setting }),
    kindsAt: async (path) => {
      const kind = fields?.[path === KEY ? 'id' : path];
      if (kind !== undefined) return new Set([kind]);
      if (!exists) return new Set();
      const rows = await (found ??= store.open(declaration));
      return columnKinds(await kindsAt({ rows }, path, signal));
    },
    open: async (say) => {
      const rows = (made.rows = await store.open({ ...declaration, onMade: say }, 'make'));
      const onIndex = (added: AddedIndex | CommandRefusal): void => {
        if (added instanceof CommandRefusal) say(added.message);
        else if (added.isNew) say(`created the index ${added.index.name}`);
      };
      return {
        rows,
        count: (...call) => rows.count(...call),
        fill: (batches, how) => rows.fill(batches, { ...how, indexes: into.indexes, onIndex }),
      };
    },
    finish: async (say) => {
      const { rows } = made;
      if (!rows) return true;
      const { indexes } = await rows.describe(signal);
      const states = into.indexes.map((paths) => indexFor(indexes, paths));
      for (const index of states)
        if (index?.refused !== undefined) say(`the index ${index.name} cannot be used: ${index.refused}`);
      say(`GET /${declaration.name} answers: ${formsOf(indexes).join('; ')}`);
      if (setting !== undefined) say(`to serve it: ${setting} npm start`);
      else say('to serve it: npm start (a server that runs now serves it within seconds)');
      return states.every((index) => index && index.refused === undefined);
    },
  };
}

/** A collection without further indexes, as an import writes it. */
export function importedInto(rows: OwnedCollection): ImportedStore {
  return { rows, count: (...call) => rows.count(...call), fill: (...call) => rows.fill(...call) };
}

/** The index of these fields, then the key. */
export function indexFor(indexes: readonly Index[], paths: readonly string[]): Index | undefined {
  const fields = [...paths, '_id'].join('\0');
  return indexes.find(({ keys }) => keys.map(({ path }) => path).join('\0') === fields);
}

/** The kinds of columns for the values that were found. Numbers that are all decimals stay decimals. */
function columnKinds({ kinds, sampled }: FieldKinds): ReadonlySet<Kind> {
  const numbers = [BSON_TYPE.int32, BSON_TYPE.int64, BSON_TYPE.double];
  const areDecimals = sampled.has(BSON_TYPE.decimal128) && !numbers.some((type) => sampled.has(type));
  return new Set([...kinds].map((kind) => (kind === 'number' && areDecimals ? 'decimal' : kind)));
}
