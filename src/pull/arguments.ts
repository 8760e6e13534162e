import { formatOfName } from '../import/format.ts';
import { integer, oneOf, readArguments, UsageError } from '../terminal/arguments.ts';
import { quoted } from '../terminal/text.ts';
import { COMPRESSIONS, type Compression } from './decode.ts';
import { FORMATS, type Format } from './framing.ts';

/** The parsed command line of `sluice pull`. */
export interface PullCommand {
  readonly url: URL;
  /** A path, or `-` for standard output. */
  readonly output: string;
  readonly format: Format;
  /** The number of connections. Each pulls its own part of the set. */
  readonly parallel: number;
  /** Whether each part becomes a file of its own. */
  readonly split: boolean;
  readonly compression: Compression;
  /** A file whose first line is an API key. */
  readonly keyFile: string | null;
  /** Whether the remains of an earlier run are discarded. */
  readonly restart: boolean;
  readonly retryForMs: number;
}

export const STDOUT = '-';
const MOST_PARTS = 64;
const OPTIONS = {
  output: { type: 'string', short: 'o' },
  format: { type: 'string' },
  parallel: { type: 'string' },
  split: { type: 'boolean' },
  compression: { type: 'string' },
  snapshot: { type: 'boolean' },
  'key-file': { type: 'string' },
  restart: { type: 'boolean' },
  'retry-for': { type: 'string' },
} as const;
/** Parameters that belong to a single part, or that parts cannot have because they are in order of id. */
const NOT_IN_PARTS = ['part', 'cursor', 'after', 'limit', 'min_price', 'max_price'];

/** Parses the arguments of `sluice pull`. Throws UsageError, which names the first wrong argument. */
export function parsePullArguments(argv: readonly string[]): PullCommand {
  const { values, positionals } = readArguments(argv, OPTIONS);
  const [address, second] = positionals;
  if (address === undefined) throw new UsageError('pull takes the URL of a stream; it got none');
  if (second !== undefined) throw new UsageError(`pull takes one URL; it got also ${quoted(second)}`);
  const output = values.output ?? '';
  if (output === '') throw new UsageError('pull takes -o FILE, or -o - for standard output; it got neither');
  if (/\.(gz|br|zst)$/i.test(output))
    throw new UsageError(`the file is written as it is: -o - | gzip > ${quoted(output)} compresses it`);
  const url = streamUrl(address);
  const format = formatOf(values.format, url, output);
  const parallel = integer('--parallel', values.parallel ?? '1', 1, MOST_PARTS);
  const split = values.split ?? false;
  if (parallel > 1) checkParts(url, output);
  if (split && parallel === 1) throw new UsageError('--split goes with --parallel only');
  if (split && format === 'csv' && !url.searchParams.has('fields'))
    throw new UsageError(
      '--split into CSV takes fields= in the URL, so that all files have the same columns',
    );
  if (values.snapshot) url.searchParams.set('consistency', 'snapshot');
  return {
    url,
    output,
    format,
    parallel,
    split,
    compression: oneOf('--compression', values.compression, COMPRESSIONS) ?? 'br',
    keyFile: values['key-file'] ?? null,
    restart: values.restart ?? false,
    retryForMs: integer('--retry-for', values['retry-for'] ?? '300', 0, 1_000_000) * 1000,
  };
}

function streamUrl(address: string): URL {
  if (!URL.canParse(address))
    throw new UsageError(
      `pull takes a URL such as http://127.0.0.1:3000/items/stream; it got ${quoted(address)}`,
    );
  const url = new URL(address);
  if (!/^https?:$/.test(url.protocol) || !url.pathname.endsWith('/items/stream'))
    throw new UsageError(`pull takes the http or https URL of /items/stream; it got ${quoted(address)}`);
  if (url.username !== '' || url.password !== '')
    throw new UsageError('an API key goes into a file: --key-file FILE, not into the URL');
  for (const name of ['safe', 'header'])
    if (url.searchParams.has(name))
      throw new UsageError(`${name} is of CSV that the server writes; leave it out`);
  return url;
}

/**
 * The format: from the option, else from the URL, else from the file's name. The parameters `format` and
 * `checkpoints` are removed from the URL, since the transfer is always NDJSON with checkpoints.
 */
function formatOf(option: string | undefined, url: URL, output: string): Format {
  const asked = oneOf('format in the URL', url.searchParams.get('format') ?? undefined, FORMATS);
  const given = oneOf('--format', option, FORMATS);
  if (asked && given && asked !== given)
    throw new UsageError(`--format ${given} and format=${asked} in the URL contradict each other`);
  for (const name of ['format', 'checkpoints']) url.searchParams.delete(name);
  return given ?? asked ?? (output === STDOUT ? null : formatOfName(output)) ?? 'ndjson';
}

function checkParts(url: URL, output: string): void {
  if (output === STDOUT) throw new UsageError('--parallel goes with -o FILE: parts do not come in order');
  const alien = NOT_IN_PARTS.find((name) => url.searchParams.has(name));
  const sort = url.searchParams.get('sort') ?? 'id_asc';
  if (alien === undefined && sort === 'id_asc') return;
  const what = alien ?? `sort=${sort}`;
  throw new UsageError(
    `--parallel pulls whole sets in order of id; it does not go with ${quoted(what)} in the URL`,
  );
}
