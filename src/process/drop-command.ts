import type { ResourceDeclaration } from '../resources/declarations.ts';
import { nameFault } from '../resources/declarations.ts';
import { findResource } from '../import/resource.ts';
import { ITEMS } from '../import/target.ts';
import { KEY } from '../store/bookmark.ts';
import type { Declaration, OwnedCollection, Store } from '../store/store.ts';
import { readArguments, UsageError } from '../terminal/arguments.ts';
import { countOf, printable, quoted } from '../terminal/text.ts';

export const DROP_HELP = `Usage: sluice drop NAME [--yes]

Drops the resource NAME with its rows and indexes: in the embedded store one that sluice import has made, in MongoDB the
collection NAME, or the one of a resource that EXPOSE or RESOURCES_FILE declares. A running server answers 404 for it within
seconds: its streams are cut, and its followers end behind a checkpoint.

  --yes    Confirms it. Without it the command says how many rows and indexes would go, and changes nothing.

Exit codes: 0 the resource is gone, 1 the store refuses it, 2 the command is wrong, or not confirmed.
`;

export const RENAME_HELP = `Usage: sluice rename NAME NEW [--yes]

Gives the resource NAME another name. Its rows, indexes and history stay. A running server answers 404 for the old name and
serves the new one within seconds (in MongoDB where EXPOSE or RESOURCES_FILE have it): streams of the old one are cut.

  --yes    Confirms it. Without it the command says how many rows it is about, and changes nothing.

Exit codes: 0 the resource has the name NEW, 1 the store refuses it, 2 the command is wrong, or not confirmed.
`;

/** What a command that takes something away needs. */
export interface TakingBack {
  readonly declared: readonly ResourceDeclaration[];
  readonly open: () => Promise<Store>;
  readonly stderr: Pick<NodeJS.WriteStream, 'write'>;
  readonly signal: AbortSignal;
  /** The store as its operator knows it. */
  readonly place: string;
}

/** Runs `sluice drop`. Throws UsageError. */
export async function runDrop(
  argv: readonly string[],
  { declared, open, stderr, signal, place }: TakingBack,
): Promise<0> {
  const { values, positionals } = readArguments(argv, { yes: { type: 'boolean' } });
  const [name, other] = positionals;
  if (name === undefined || other !== undefined)
    throw new UsageError('drop takes one resource: sluice drop orders');
  const { rows } = await openExisting(name, declared, await open());
  const { indexes } = await rows.describe(signal);
  const size = `${await sizeOf(rows, signal)} and ${countOf(indexes.filter(({ keys }) => keys.length > 1).length, 'index', 'indexes')}`;
  if (!values.yes)
    throw new UsageError(`drop removes ${name} with ${size} from ${place}: confirm it with --yes`);
  await rows.drop();
  stderr.write(`${printable(`dropped ${name} with ${size} from ${place}`)}\n`);
  return 0;
}

/** Runs `sluice rename`. Throws UsageError. */
export async function runRename(
  argv: readonly string[],
  { declared, open, stderr, signal, place }: TakingBack,
): Promise<0> {
  const { values, positionals } = readArguments(argv, { yes: { type: 'boolean' } });
  const [name, to, other] = positionals;
  if (name === undefined || to === undefined || other !== undefined)
    throw new UsageError('rename takes a resource and its new name: sluice rename orders old-orders');
  const fault = to === ITEMS ? 'the resource items is declared by the server' : nameFault(to);
  if (fault !== undefined) throw new UsageError(`${fault}; choose another name`);
  const isDeclared = declared.some((one) => one.name === name);
  if (isDeclared)
    throw new UsageError(`RESOURCES_FILE declares the resource ${quoted(name)}: give it another name there`);
  const store = await open();
  const { rows, declaration } = await openExisting(name, declared, store);
  const { collections } = await store.list(declaration.database);
  if (collections.some(({ collection }) => collection === to))
    throw new UsageError(`there is a resource ${quoted(to)} already`);
  const size = await sizeOf(rows, signal);
  if (!values.yes)
    throw new UsageError(
      `rename makes /${to} of /${name} with ${size} in ${place}, and clients of /${name} get 404: confirm it with --yes`,
    );
  await rows.rename(to);
  stderr.write(`${printable(`renamed ${name} with ${size} to ${to}`)}\n`);
  return 0;
}

/** Opens a resource that exists. Throws UsageError when it does not, or is none that a command may change. */
export async function openExisting(
  name: string,
  declared: readonly ResourceDeclaration[],
  store: Store,
): Promise<{ readonly declaration: Declaration; readonly rows: OwnedCollection }> {
  if (name === ITEMS && store.name === 'sqlite')
    throw new UsageError(
      'the server declares the resource items, and would make it again: sluice import FILE --into items --drop replaces its rows',
    );
  const { declaration } = await findResource(name, declared, store);
  const { collections } = await store.list(declaration.database);
  const found = collections.find(({ collection }) => collection === declaration.collection);
  if (!found) throw new UsageError(`there is no resource ${quoted(name)}: sluice init lists them`);
  if (found.refused !== undefined) throw new UsageError(`${quoted(name)} is no resource: ${found.refused}`);
  return { declaration, rows: await store.open({ ...declaration, indexes: [] }) };
}

export async function sizeOf(rows: Pick<OwnedCollection, 'count'>, signal: AbortSignal): Promise<string> {
  const { rows: count, is } = await rows.count({ sort: KEY, direction: 1 }, 'estimated', signal);
  return `${is === 'exact' ? '' : 'about '}${countOf(count, 'row')}`;
}
