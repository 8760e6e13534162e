import { CommandRefusal } from '../errors.ts';
import type { Declared } from '../resources/declarations.ts';
import { formsOf } from '../resources/query/not-indexed.ts';
import type { Index } from '../store/indexes.ts';
import type { OwnedCollection, Store } from '../store/store.ts';
import { printable } from '../terminal/text.ts';
import type { FileImport } from './arguments.ts';
import { runImport, type ImportedStore, type ImportIo } from './command.ts';
import { findResource, type NamedResource } from './find-resource.ts';
import type { Into } from './target.ts';

/** The parts of a store that an import of a resource uses. */
export type ResourceStore = Pick<Store, 'keepsDeclarations' | 'loads' | 'list' | 'make'>;

/**
 * Imports a file into a resource, makes its indexes, and says what can be asked of it. The resource is made when the
 * first rows are to be written. Resolves with the exit code, see runImport: 1 also when an index cannot be used.
 */
export async function runResourceImport(
  command: FileImport & { readonly into: Into },
  declared: readonly Declared[],
  store: ResourceStore,
  io: ImportIo,
): Promise<0 | 1 | 2> {
  const { into } = command;
  const named = await findResource(into.name, declared, store);
  const tell = (line: string): void => {
    io.stderr.write(`${io.isTTY ? '\r\u001b[K' : ''}${printable(line)}\n`);
  };
  const begun: { opened?: Promise<OwnedCollection>; indexed?: Promise<void> } = {};
  const open = (): Promise<OwnedCollection> => (begun.opened ??= store.make(named.declaration, tell));
  const ready = async (): Promise<OwnedCollection> => {
    const rows = await open();
    if (rows.indexesFirst) await (begun.indexed ??= addIndexes(rows, into, tell, io.signal));
    return rows;
  };
  const code = await runImport(command, storeOf(named, store.loads, open, ready), {
    ...io,
    place: `${into.name} in ${io.place}`,
  });
  if (!begun.opened || code === 2 || io.signal.aborted) return code;
  const rows = await ready();
  if (!rows.indexesFirst) await addIndexes(rows, into, tell, io.signal);
  const unusable = await report(rows, into, named, store.keepsDeclarations, tell, io.signal);
  return unusable > 0 ? 1 : code;
}

function storeOf(
  { exists }: NamedResource,
  canLoad: boolean,
  open: () => Promise<OwnedCollection>,
  ready: () => Promise<OwnedCollection>,
): ImportedStore {
  const load: ImportedStore['load'] = async (...call) => (await (await ready()).load?.(...call)) ?? null;
  return {
    ...(canLoad && { load }),
    insert: async (...call) => (await ready()).insert(...call),
    count: async (...call) => (exists ? (await open()).count(...call) : { rows: 0, is: 'exact' }),
    clear: async (...call) => (await open()).clear(...call),
  };
}

async function addIndexes(
  rows: OwnedCollection,
  { indexes }: Into,
  tell: (line: string) => void,
  signal: AbortSignal,
): Promise<void> {
  for (const paths of indexes) {
    try {
      const { index, isNew } = await rows.addIndex(paths, () => undefined, signal);
      if (isNew) tell(`created the index ${index.name}`);
    } catch (error) {
      if (!(error instanceof CommandRefusal)) throw error;
      tell(error.message);
    }
  }
}

/** Says what can be asked, and how it is served. `isKept`: every start serves it. Returns how many of the wanted indexes cannot be used. */
async function report(
  rows: OwnedCollection,
  { name, indexes: wanted }: Into,
  { declaration }: NamedResource,
  isKept: boolean,
  tell: (line: string) => void,
  signal: AbortSignal,
): Promise<number> {
  const { indexes } = await rows.describe(signal);
  const states = wanted.map((paths) => indexFor(indexes, paths));
  for (const index of states)
    if (index?.refused !== undefined) tell(`the index ${index.name} cannot be used: ${index.refused}`);
  tell(`GET /${declaration.name} answers: ${formsOf(indexes).join('; ')}`);
  if (!isKept) tell(`to serve it: EXPOSE=${name} npm start`);
  else tell('to serve it: npm start (a server that runs now serves it within seconds)');
  return states.filter((index) => !index || index.refused !== undefined).length;
}

/** The index of these fields, then the key. */
export function indexFor(indexes: readonly Index[], paths: readonly string[]): Index | undefined {
  const fields = [...paths, '_id'].join('\0');
  return indexes.find(({ keys }) => keys.map(({ path }) => path).join('\0') === fields);
}
