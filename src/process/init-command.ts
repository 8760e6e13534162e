import { asset } from '../asset.ts';
import { AppError, CommandRefusal } from '../base/errors.ts';
import { ITEM_COLLECTION } from '../resources/item-collection.ts';
import { indexLine, withoutSuffix } from '../resources/query/not-indexed.ts';
import { KEY } from '../store/bookmark.ts';
import type { Index } from '../store/indexes.ts';
import type { CollectionEntry, Declaration, Store } from '../store/store.ts';
import { readArguments, UsageError } from '../terminal/arguments.ts';
import { printable } from '../terminal/text.ts';
import { reasonOf } from '../base/error-reason.ts';
import { nameFor } from '../import/resource-name.ts';

export const INIT_HELP = `Usage: sluice init > resources.json

Prints a file for RESOURCES_FILE: the collections of the database of MONGODB_URI that can be served, each with the indexes
that queries can use. Without MONGODB_URI: the resources of the embedded store. It changes nothing in the store.

Notes on stderr name the collections that cannot be served, and the indexes that only lack _id at their end, with the command
of mongosh that makes the fitting one. Delete from the file what must not be served, and add what must be hidden:
"hide": ["card"].

Exit codes: 0 the file is printed, 1 the store does not answer, 2 the command is wrong.
`;

type Entry = Pick<Declaration, 'name' | 'collection' | 'indexes'>;

/** Runs `sluice init`: prints a RESOURCES_FILE of what the store has. Resolves with the exit code. Throws UsageError. */
export async function runInit(
  argv: readonly string[],
  open: () => Promise<Store>,
  { stdout, stderr, signal }: Pick<NodeJS.Process, 'stdout' | 'stderr'> & { readonly signal: AbortSignal },
): Promise<0> {
  const [first] = readArguments(argv, {}).positionals;
  if (first !== undefined) throw new UsageError(`init takes no arguments; got ${first}`);
  const store = await open();
  const note = (line: string): void => {
    stderr.write(`${printable(line)}\n`);
  };
  const { collections } = await store.list();
  const kept = collections.flatMap(({ declaration, isUnfilled }) => (isUnfilled ? [] : (declaration ?? [])));
  const ofStore = kept.map((one) => (one.name === ITEM_COLLECTION.name ? { ...one, indexes: [] } : one));
  const others = collections.filter(({ declaration }) => !declaration);
  const entries = [...ofStore, ...(await ofOthers(others, store, note, signal))];
  const resources = entries.map(({ name, collection, indexes }) => [
    name,
    { ...(collection !== name && { collection }), ...(indexes.length > 0 && { indexes }) },
  ]);
  // An absolute URL: an editor then checks the file wherever it is stored.
  const $schema = asset('../docs/resources.schema.json').href;
  stdout.write(
    `${JSON.stringify({ $schema, resources: Object.fromEntries(resources) as object }, null, 2)}\n`,
  );
  if (entries.length === 0) note('the store has nothing to serve');
  return 0;
}

async function ofOthers(
  collections: readonly CollectionEntry[],
  store: Pick<Store, 'open'>,
  note: (line: string) => void,
  signal: AbortSignal,
): Promise<readonly Entry[]> {
  const entries: Entry[] = [];
  for (const { collection, database, refused } of collections) {
    const leftOut = (reason: string) => note(`${collection} is left out: ${reason}`);
    if (refused !== undefined) {
      leftOut(refused);
      continue;
    }
    try {
      const rows = await store.open({ name: collection, collection, indexes: [] });
      const { indexes } = await rows.describe(signal);
      const name = nameFor(
        collection,
        entries.map((entry) => entry.name),
      );
      const line = indexLine(false, name, database, collection);
      for (const { index, fields } of withoutSuffix(indexes))
        note(`${collection}: the index ${index} lacks _id, so it orders no rows; make ${line(fields)}`);
      entries.push({ name, collection, indexes: usableOf(indexes) });
    } catch (error) {
      if (error instanceof AppError && !(error.cause instanceof CommandRefusal)) throw error;
      leftOut(reasonOf(error));
    }
  }
  return entries;
}

/** The fields of the indexes that end with the key, or have it before their end, each once. */
function usableOf(indexes: readonly Index[]): readonly (readonly string[])[] {
  const lists = indexes
    .filter(({ refused }) => refused === undefined)
    .map(({ keys }) => keys.map(({ path }) => path))
    .filter((paths) => paths.length > 1 && paths.includes(KEY))
    .map((paths) => (paths.at(-1) === KEY ? paths.slice(0, -1) : paths));
  return lists.filter((paths, n) => lists.findIndex((other) => other.join('\0') === paths.join('\0')) === n);
}
