import { readFile } from 'node:fs/promises';
import { reasonOf } from '../base/error-reason.ts';
import { getJson } from '../pull/http.ts';
import { readKey } from '../pull/key-file.ts';
import type { RequestOptions } from '../pull/proved-rows.ts';
import { Interruption, Refusal } from '../pull/retry.ts';
import { readArguments, UsageError } from '../terminal/arguments.ts';
import { printable, quoted } from '../terminal/text.ts';
import { typesOf, type RowSchema } from './row-types.ts';

interface TypesCommand {
  readonly url: URL;
  /** A file of types that is compared in place of being written. */
  readonly check: string | null;
  readonly keyFile: string | null;
}

interface TypesIo {
  readonly stdout: NodeJS.WritableStream;
  readonly stderr: NodeJS.WritableStream;
  readonly signal: AbortSignal;
}

const TIMEOUT_MS = 60_000;
/** A resource's name is the first segment of its URLs. */
const NAME = /^[A-Za-z0-9][A-Za-z0-9._~-]*$/;
/** A server of many resources describes each of them. Bytes. */
const LONGEST_DOCUMENT = 64 * 1024 * 1024;
const OPTIONS = { check: { type: 'string' }, 'key-file': { type: 'string' } } as const;

export const TYPES_HELP = `Usage:
  sluice types URL [--key-file FILE] > shop.ts
  sluice types URL [--key-file FILE] --check shop.ts

Writes types of TypeScript for the rows of a server, as /openapi.json describes them: all that the key may see.

  URL                  the URL of the server, or of one of its resources:
                       http://127.0.0.1:3000 or http://127.0.0.1:3000/orders
  --check FILE         writes nothing, and fails when FILE is not what would be written
  --key-file FILE      a file whose first line is the API key

Exit codes: 0 written, or FILE is up to date, 1 it is not, or the server has no such rows, 2 wrong usage.
`;

/** Parses the arguments of `sluice types`. Throws UsageError, which names the first wrong argument. */
export function parseTypesArguments(argv: readonly string[]): TypesCommand {
  const { values, positionals } = readArguments(argv, OPTIONS);
  const [address, second] = positionals;
  if (address === undefined) throw new UsageError('types takes the URL of a server; it got none');
  if (second !== undefined) throw new UsageError(`types takes one URL; it also got ${quoted(second)}`);
  const url = URL.canParse(address) ? new URL(address) : null;
  if (!url || !/^https?:$/.test(url.protocol))
    throw new UsageError(`types takes the http or https URL of a server; it got ${quoted(address)}`);
  if (url.username !== '' || url.password !== '')
    throw new UsageError(
      'types takes no key in the URL; write the API key to a file and use --key-file FILE',
    );
  url.search = '';
  url.hash = '';
  url.pathname = url.pathname.replace(/\/+$/, '');
  return { url, check: values.check ?? null, keyFile: values['key-file'] ?? null };
}

/** Writes the types to standard output, or compares them with a file. Resolves with the exit code. */
export async function runTypes({ url, check, keyFile }: TypesCommand, io: TypesIo): Promise<0 | 1> {
  try {
    const key = keyFile === null ? null : await readKey(keyFile);
    const signal = AbortSignal.any([io.signal, AbortSignal.timeout(TIMEOUT_MS)]);
    const schemas = await schemasOf(url, { compression: 'gzip', key, signal });
    const types = typesOf(schemas, url.href.replace(/\/$/, ''));
    if (check === null) io.stdout.write(types);
    else compare(check, await contentOf(check), types);
    return 0;
  } catch (error) {
    if (!(error instanceof Refusal || error instanceof Interruption)) throw error;
    io.stderr.write(`sluice: ${printable(error.message)}\n`);
    return 1;
  }
}

/**
 * The schemas of the rows of a server by resource, or of the one resource that the URL is of: its last segment may also be
 * that of a path which the server is mounted under. Rejects as getJson does.
 */
async function schemasOf(url: URL, options: RequestOptions): Promise<ReadonlyMap<string, RowSchema>> {
  const segments = url.pathname.split('/').filter((segment) => segment !== '');
  const last = segments.at(-1);
  const around = last === undefined ? null : await rowsOrNull(url, segments.slice(0, -1), options);
  const name = decodeURIComponent(last ?? '');
  const own = around?.get(name);
  if (own) return new Map([[name, own]]);
  const below = around ? await rowsOrNull(url, segments, options) : await rowsOf(url, segments, options);
  if (below) return below;
  const others = [...(around ?? new Map<string, RowSchema>()).keys()].join(', ');
  throw new Refusal(`the server has no resource ${name} for this key; it has ${others}`);
}

function rowsOrNull(...call: Parameters<typeof rowsOf>): Promise<ReadonlyMap<string, RowSchema> | null> {
  return rowsOf(...call).catch((error: unknown) => {
    if (error instanceof Refusal) return null;
    throw error;
  });
}

async function rowsOf(
  url: URL,
  folder: readonly string[],
  options: RequestOptions,
): Promise<ReadonlyMap<string, RowSchema>> {
  const document = new URL(url);
  document.pathname = [...folder, 'openapi.json'].join('/');
  return rowsIn(await getJson(document, options, LONGEST_DOCUMENT));
}

/** The schemas of rows in an OpenAPI document, in the order of their names. Throws Refusal where there are none. */
function rowsIn(document: unknown): ReadonlyMap<string, RowSchema> {
  const { components } = Object(document) as { components?: { schemas?: Record<string, RowSchema> } };
  const found = Object.values(components?.schemas ?? {}).flatMap((schema): [string, RowSchema][] => {
    const resource = schema['x-resource'];
    if (typeof resource !== 'string') return [];
    // Its name stands in a comment of the module: no server may write code there.
    if (!NAME.test(resource))
      throw new Refusal(`the server has a resource with a name that is none: ${quoted(resource)}`);
    return [[resource, schema]];
  });
  if (found.length === 0)
    throw new Refusal('the server describes no rows: it serves none, or wants a key (--key-file FILE)');
  return new Map(found.sort(([a], [b]) => (a < b ? -1 : 1)));
}

async function contentOf(file: string): Promise<string> {
  return readFile(file, 'utf8').catch((error: unknown) => {
    throw new Refusal(`${file} cannot be read: ${reasonOf(error)}`, { cause: error });
  });
}

/** Throws Refusal, with the first difference, where a file of types is not these. */
function compare(file: string, content: string, types: string): void {
  if (content === types) return;
  const has = content.split('\n');
  const wanted = types.split('\n');
  const at = wanted.findIndex((line, n) => line !== has[n]);
  const head = wanted.slice(0, at + 1).findLast((line) => line.startsWith('export interface '));
  const place = head === undefined ? 'its head' : (head.split(' ')[2] ?? '');
  const shown = (line: string | undefined) => (line === undefined ? 'nothing' : quoted(line.trim()));
  throw new Refusal(
    `${file} is stale: in ${place} it has ${shown(has[at])}, and the server has ${shown(wanted[at])}`,
  );
}
