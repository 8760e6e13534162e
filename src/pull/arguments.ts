import { integer, oneOf, readArguments, UsageError } from '../terminal/arguments.ts';
import { printable, quoted } from '../terminal/text.ts';
import { formatOfName } from '../rows/text-files.ts';
import { editionUrls, type EditionUrls } from './edition/edition-url.ts';
import { exportUrls } from './export-file.ts';
import { COMPRESSIONS, type Compression } from './proved-rows.ts';

export interface PullCommand {
  readonly url: URL;
  /** A path, or `-` for standard output. */
  readonly output: string;
  /** The number of connections. Each pulls its own part of the set. */
  readonly parallel: number;
  readonly compression: Compression;
  /** A file whose first line is an API key. */
  readonly keyFile: string | null;
  /** Whether the remains of an earlier run are discarded. */
  readonly restart: boolean;
  readonly retryForMs: number;
  /** Whether the copy is kept up to date until the user interrupts. */
  readonly follow: boolean;
  /** A SQLite file that becomes a copy of the set. Null: the output is `output`. */
  readonly into: string | null;
  /** Whether the URL is that of an export, whose file becomes the output. */
  readonly isExport: boolean;
  /** Where editions of the set are. null: it can have none, because the URL selects rows. */
  readonly edition: EditionUrls | null;
  /** Whether the URL is that of an edition, which becomes the output. A copy is then made of it. */
  readonly isEdition: boolean;
  /** A folder that has the files of editions, as the server has them. */
  readonly mirror: string | null;
}

export const STDOUT = '-';
const MOST_PARTS = 64;
/** The connections for chunks of an edition. */
const CHUNK_CONNECTIONS = '4';
/** Extensions of files that --into keeps, and of those that no pull writes. */
const SQLITE = /\.(sqlite3?|db3?)$/i;
const OTHERS = /\.(gz|br|zst|zip|parquet|arrows?|feather|avro|orc|tsv|xlsx?|ods|duckdb)$/i;
const OPTIONS = {
  output: { type: 'string', short: 'o' },
  parallel: { type: 'string' },
  compression: { type: 'string' },
  snapshot: { type: 'boolean' },
  'key-file': { type: 'string' },
  restart: { type: 'boolean' },
  'retry-for': { type: 'string' },
  follow: { type: 'boolean' },
  into: { type: 'string' },
  export: { type: 'boolean' },
  mirror: { type: 'string' },
} as const;
/** Parameters that belong to a single part, or that parts cannot have because they are in id order. */
const NOT_IN_PARTS = ['part', 'cursor', 'after', 'limit'];

/** Parameters of streams that do not select rows of a copy. */
const NOT_IN_COPIES = [...NOT_IN_PARTS, 'sort', 'consistency', 'at', 'follow', 'since'];

/** Parses the arguments of `sluice pull`. Throws UsageError, which names the first wrong argument. */
export function parsePullArguments(argv: readonly string[]): PullCommand {
  const { values, positionals } = readArguments(argv, OPTIONS);
  const [address, second] = positionals;
  if (address === undefined) throw new UsageError('pull takes the URL of a stream; it got none');
  if (second !== undefined) throw new UsageError(`pull takes one URL; it also got ${quoted(second)}`);
  if (values.export) return exportCommand(address, values);
  const into = values.into ?? null;
  const edition = URL.canParse(address) ? editionUrls(new URL(address)) : null;
  if (values.mirror !== undefined || (edition && into === null))
    return editionCommand(address, edition, values);
  if (edition && into !== null) return copyOfEdition(address, edition, into, values);
  if (into !== null && values.output !== undefined)
    throw new UsageError('pull takes one of -o and --into; it got both');
  const output = into ?? values.output ?? '';
  if (output === '')
    throw new UsageError(
      'pull takes -o FILE, -o - for standard output, or --into FILE.sqlite; it got none of them',
    );
  const url = streamUrl(address);
  const follow = values.follow ?? false;
  const alone = follow ? '--follow' : into !== null ? '--into' : null;
  checkFormat(url);
  checkName(output, into === null);
  if (alone !== null) checkCopy(alone, url, values);
  const parallel = integer('--parallel', values.parallel ?? '1', 1, MOST_PARTS);
  if (parallel > 1) checkParts(url, output);
  if (values.snapshot) url.searchParams.set('consistency', 'snapshot');
  return {
    url,
    output,
    parallel,
    compression: oneOf('--compression', values.compression, COMPRESSIONS) ?? 'br',
    keyFile: values['key-file'] ?? null,
    restart: values.restart ?? false,
    follow,
    into,
    isExport: false,
    edition: into === null || url.search !== '' ? null : editionUrls(new URL('edition', url)),
    isEdition: false,
    mirror: null,
    retryForMs: retryForMs(values),
  };
}

function retryForMs({ 'retry-for': seconds = '300' }: { readonly 'retry-for'?: string }): number {
  return integer('--retry-for', seconds, 0, 1_000_000) * 1000;
}

/** Options that say what rows come, or how. An export has its rows already. */
const NOT_OF_EXPORTS = ['parallel', 'compression', 'snapshot', 'follow', 'into'] as const;

type Values = ReturnType<typeof readArguments<typeof OPTIONS>>['values'];

function exportCommand(address: string, values: Values): PullCommand {
  const excluded = NOT_OF_EXPORTS.find((name) => values[name] !== undefined);
  if (excluded !== undefined) throw new UsageError(`--export does not support --${excluded}`);
  const url = URL.canParse(address) ? new URL(address) : null;
  if (!url || !exportUrls(url))
    throw new UsageError(
      `--export takes the URL of an export, such as http://127.0.0.1:3000/exports/ID; it got ${quoted(address)}`,
    );
  checkUser(url);
  const { output = '' } = values;
  if (output === '' || output === STDOUT)
    throw new UsageError('--export takes -o FILE, because only the whole file is proved');
  return {
    url,
    output,
    parallel: 1,
    compression: 'none',
    keyFile: values['key-file'] ?? null,
    restart: values.restart ?? false,
    follow: false,
    into: null,
    isExport: true,
    edition: null,
    isEdition: false,
    mirror: null,
    retryForMs: retryForMs(values),
  };
}

/** Options that say what rows come, or how. An edition is the whole set, and its files have their codings. */
const NOT_OF_EDITIONS = ['compression', 'snapshot'] as const;

function editionCommand(address: string, edition: EditionUrls | null, values: Values): PullCommand {
  const { mirror = null, output = '', into } = values;
  if (mirror !== null && (output !== '' || into !== undefined))
    throw new UsageError('pull takes one of -o, --into and --mirror; it got two of them');
  if (!edition)
    throw new UsageError(
      `--mirror takes the URL of an edition, such as http://127.0.0.1:3000/items/edition; it got ${quoted(address)}`,
    );
  if (values.follow) throw new UsageError('--follow needs the URL of a stream: an edition has no changes');
  if (mirror === null && output === '')
    throw new UsageError('pull of an edition takes -o FILE, -o -, --into FILE.sqlite or --mirror DIR');
  if (mirror !== null && edition.name !== null)
    throw new UsageError('--mirror keeps the newest editions; it takes the URL of the newest one');
  checkEdition(address, values);
  if (mirror === null) checkName(output, true);
  return {
    url: edition.head,
    output: mirror ?? output,
    parallel: integer('--parallel', values.parallel ?? CHUNK_CONNECTIONS, 1, MOST_PARTS),
    compression: 'none',
    keyFile: values['key-file'] ?? null,
    restart: values.restart ?? false,
    follow: false,
    into: null,
    isExport: false,
    edition,
    isEdition: true,
    mirror,
    retryForMs: retryForMs(values),
  };
}

/** A copy that an edition begins, and that goes on with changes where a server has them. */
function copyOfEdition(address: string, edition: EditionUrls, into: string, values: Values): PullCommand {
  checkEdition(address, values);
  if (values.output !== undefined) throw new UsageError('pull takes one of -o and --into; it got both');
  if (edition.name !== null)
    throw new UsageError('--into keeps the newest rows; it takes the URL of the newest edition');
  if (values.follow && edition.isStatic)
    throw new UsageError('--follow needs a server: a folder of editions has no changes');
  checkName(into, false);
  return {
    url: edition.isStatic ? edition.head : new URL('stream', edition.base),
    output: into,
    parallel: integer('--parallel', values.parallel ?? CHUNK_CONNECTIONS, 1, MOST_PARTS),
    compression: 'br',
    keyFile: values['key-file'] ?? null,
    restart: values.restart ?? false,
    follow: values.follow ?? false,
    into,
    isExport: false,
    edition,
    isEdition: true,
    mirror: null,
    retryForMs: retryForMs(values),
  };
}

function checkEdition(address: string, values: Values): void {
  const excluded = NOT_OF_EDITIONS.find((name) => values[name] !== undefined);
  if (excluded !== undefined) throw new UsageError(`an edition does not support --${excluded}`);
  const url = new URL(address);
  if (url.search !== '')
    throw new UsageError(
      `an edition is the whole set; it takes no parameters, and got ${quoted(url.search)}`,
    );
  checkUser(url);
}

/** A copy holds whole rows in order of their changes. `option` is what asks for one. */
function checkCopy(
  option: string,
  url: URL,
  values: { readonly parallel?: string; readonly snapshot?: boolean },
): void {
  for (const name of ['parallel', 'snapshot'] as const)
    if (values[name] !== undefined) throw new UsageError(`${option} does not support --${name}`);
  const excluded = NOT_IN_COPIES.find((name) => url.searchParams.has(name));
  if (excluded !== undefined)
    throw new UsageError(`${option} keeps whole sets; it does not support ${quoted(excluded)} in the URL`);
}

function streamUrl(address: string): URL {
  if (!URL.canParse(address))
    throw new UsageError(
      `pull takes a URL such as http://127.0.0.1:3000/items/stream; it got ${quoted(address)}`,
    );
  const url = new URL(address);
  const segments = url.pathname.split('/').filter((segment) => segment !== '');
  if (!/^https?:$/.test(url.protocol) || segments.length === 0)
    throw new UsageError(
      `pull takes the http or https URL of a stream, such as that of /items/stream; it got ${quoted(address)}`,
    );
  const isStream = segments.length > 1 && segments.at(-1) === 'stream';
  url.pathname = [...segments, ...(isStream ? [] : ['stream'])].join('/');
  checkUser(url);
  return url;
}

function checkUser({ username, password }: URL): void {
  if (username !== '' || password !== '')
    throw new UsageError('pull takes no key in the URL; write the API key to a file and use --key-file FILE');
}

/** Refuses another format in the URL, and removes `format` and `checkpoints`: the transfer is NDJSON with them. */
function checkFormat(url: URL): void {
  const asked = url.searchParams.get('format');
  if (asked !== null && asked !== 'ndjson') throw notWritten(`format=${printable(asked)} in the URL`);
  for (const name of ['format', 'checkpoints']) url.searchParams.delete(name);
}

/** Refuses a file whose extension promises another format than it would have: NDJSON, or else SQLite. */
function checkName(output: string, isNdjson: boolean): void {
  const named = formatOfName(output);
  if (OTHERS.test(output) || (named !== null && named !== 'ndjson')) throw notWritten(quoted(output));
  if (isNdjson ? SQLITE.test(output) : named === 'ndjson')
    throw new UsageError(`-o writes NDJSON, and --into keeps a SQLite file; pull got ${quoted(output)}`);
}

function notWritten(given: string): UsageError {
  return new UsageError(
    `pull writes NDJSON or SQLite; it got ${given}. CSV, JSON and Arrow come from the server, as in curl 'URL?format=csv' -o FILE, and Parquet from an export`,
  );
}

function checkParts(url: URL, output: string): void {
  if (output === STDOUT)
    throw new UsageError('--parallel requires -o FILE, because parts do not arrive in order');
  const excluded = NOT_IN_PARTS.find((name) => url.searchParams.has(name));
  const sort = url.searchParams.get('sort') ?? 'id_asc';
  if (excluded === undefined && sort === 'id_asc') return;
  const what = excluded ?? `sort=${sort}`;
  throw new UsageError(
    `--parallel pulls whole sets in id order; it does not support ${quoted(what)} in the URL`,
  );
}
