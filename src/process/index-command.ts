import type { ResourceDeclaration } from '../resources/declarations.ts';
import { formsOf } from '../resources/query/not-indexed.ts';
import { KEY } from '../store/bookmark.ts';
import type { Store } from '../store/store.ts';
import { USERS } from '../users/row.ts';
import { openExisting, sizeOf } from './drop-command.ts';
import { readArguments, UsageError } from '../terminal/arguments.ts';
import { startProgress, type Console, type Progress } from '../terminal/progress.ts';
import { counted, printable, quoted } from '../terminal/text.ts';
import { findResource, indexFor } from '../import/resource.ts';
import { fieldsOf } from '../import/target.ts';

export const INDEX_HELP = `Usage: sluice index NAME a,b
       sluice index NAME --drop a,b [--yes]

Adds an index to the resource NAME. Its rows can then be filtered by a and sorted by b, or by the key. The index ends with
the key by itself. Nested fields are written as customer.country.

The resource is one of the store that the settings name: in the embedded store one that sluice import has made, in
MongoDB the collection NAME, or the one of a resource that EXPOSE or RESOURCES_FILE declares. If none has the name users,
sluice index users metadata.team adds an index of users, for keys that open a part of them.

The command ends when the index is whole. SIGINT and SIGTERM end it early. In the embedded store a running server, the next
start or the same command then go on; in MongoDB the same command does.

An index of a field that is an array in some row cannot be used. The command says so. Take the arrays out, then run the
same command again (in MongoDB drop the index first).

  --drop a,b   Drops the index of these fields and the key.
  --yes        Confirms it. Without it the command says what could not be asked any more, and changes nothing.

Exit codes: 0 the index can be used, or is gone, 1 it cannot or is not whole, 2 the command is wrong or the index exists.
`;

/** Runs `sluice index`: adds the index and says what can be asked now. Resolves with the exit code. Throws UsageError. */
export async function runIndex(
  argv: readonly string[],
  declared: readonly ResourceDeclaration[],
  open: () => Promise<Store>,
  { signal, ...io }: Console & { readonly signal: AbortSignal },
): Promise<0 | 1 | 2> {
  const { values, positionals } = readArguments(argv, { drop: { type: 'string' }, yes: { type: 'boolean' } });
  const [name, fields, other] = positionals;
  if (values.drop !== undefined) {
    if (name === undefined || fields !== undefined)
      throw new UsageError('index --drop takes a resource: sluice index orders --drop status,createdAt');
    const paths = fieldsOf('--drop', values.drop);
    return dropIndex(name, paths, values.yes === true, declared, await open(), { signal, ...io });
  }
  if (values.yes) throw new UsageError('--yes applies only to --drop');
  if (name === undefined || fields === undefined || other !== undefined)
    throw new UsageError(
      'index takes a resource and the fields of the index: sluice index orders status,createdAt',
    );
  const paths = fieldsOf('index', fields);
  const store = await open();
  const say = (line: string): void => {
    io.stderr.write(`${printable(line)}\n`);
  };
  const isUsers = await areUsers(name, declared, store);
  const { declaration, exists } = await findResource(name, declared, store);
  if (!exists && !isUsers)
    throw new UsageError(`there is no resource ${quoted(name)}: sluice init lists them`);
  try {
    const rows = isUsers
      ? await store.records(USERS)
      : await store.open({ ...declaration, onMade: say }, 'make');
    const { rows: total } = await rows.count({ sort: KEY, direction: 1 }, 'estimated', signal);
    const progress = indexProgress(io, total);
    const { index, isNew } = await rows.addIndex(paths, progress.add, signal).finally(progress.stop);
    if (!isNew && index.refused === undefined) {
      say(`${name} has the index ${index.name} already`);
      return 2;
    }
    const { indexes } = await rows.describe(signal);
    const refused = indexFor(indexes, paths)?.refused ?? index.refused;
    if (refused !== undefined) {
      say(`the index ${index.name} cannot be used: ${refused}`);
      return 1;
    }
    say(`created the index ${index.name} of ${name}`);
    if (!isUsers) say(`GET /${declaration.name} answers: ${formsOf(indexes).join('; ')}`);
    return 0;
  } catch (error) {
    if (signal.aborted && error === signal.reason) {
      say('the index is not whole yet: the same command goes on, and in the embedded store any server does');
      return 1;
    }
    throw error;
  }
}

async function dropIndex(
  name: string,
  paths: readonly string[],
  isConfirmed: boolean,
  declared: readonly ResourceDeclaration[],
  store: Store,
  { stderr, signal }: Console & { readonly signal: AbortSignal },
): Promise<0> {
  const { rows, declaration } = await openExisting(name, declared, store);
  const { indexes } = await rows.describe(signal);
  const index = indexFor(indexes, paths);
  if (!index) {
    const known = indexes.filter(({ keys }) => keys.length > 1).map((one) => one.name);
    throw new UsageError(
      `${name} has no index of ${paths.join(',')} and the key; it has: ${known.join(', ') || 'none'}`,
    );
  }
  const kept = formsOf(indexes.filter((one) => one !== index));
  const lost = formsOf(indexes).filter((form) => !kept.includes(form));
  const what = `the index ${index.name} of ${name} (${await sizeOf(rows, signal)})`;
  const ends =
    lost.length === 0 ? '' : `; GET /${declaration.name} then no longer answers: ${lost.join('; ')}`;
  if (!isConfirmed) throw new UsageError(`--drop removes ${what}${ends}. Confirm it with --yes`);
  await rows.removeIndex(paths);
  stderr.write(`${printable(`dropped ${what}${ends}`)}\n`);
  return 0;
}

/** Whether a name means the users of the server, and no resource. */
async function areUsers(
  name: string,
  declared: readonly ResourceDeclaration[],
  store: Pick<Store, 'list'>,
): Promise<boolean> {
  if (name !== USERS.name || declared.some((one) => (one.name ?? one.collection) === name)) return false;
  const { collections } = await store.list();
  return collections.every(
    ({ collection, refused, isUnfilled }) => collection !== name || refused !== undefined || isUnfilled,
  );
}

/** A store that does not say how far it is shows no progress. */
function indexProgress(io: Console, total: number) {
  let progress: Progress | null = null;
  let done = 0;
  return {
    add: (rows: number): void => {
      progress ??= startProgress(io, total);
      done += rows;
      progress.update(done, `${counted(done)} rows indexed`);
    },
    stop: (): void => progress?.stop(),
  };
}
