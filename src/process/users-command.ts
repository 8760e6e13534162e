import { createReadStream } from 'node:fs';
import { Readable, type Writable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { getJson } from '../pull/http.ts';
import { readKey } from '../pull/key-file.ts';
import { Refusal } from '../pull/retry.ts';
import type { Store } from '../store/store.ts';
import { readArguments, UsageError } from '../terminal/arguments.ts';
import { countOf, printable } from '../terminal/text.ts';
import { USERS } from '../users/row.ts';
import { takeUsers, usersAsJson } from '../users/transfer.ts';
import { PATH } from '../users/user.ts';

export const USERS_HELP = `Usage: sluice users export [URL] > users.ndjson
       sluice users import FILE

export writes all users of /api/users to standard output, a line of JSON each: those of the store that the settings name, or of the
server at URL, which may be one of version 0.2 or 0.3. import writes them into the store that the settings name, with their ids
and times. So their ETags stay, and clients go on with conditional writes. FILE - is standard input. Servers may run meanwhile.
Users have no passwords, and API keys are not among them: these are in API_KEYS_FILE.

  --key-file FILE    export from URL: a file whose first line is an API key that may read all users
  --replace          import: replace a user of the same id that has other content; without it that is a fault
  --help             show this text

Exit codes: 0 all users, 1 a fault (what has none was written), 2 the command is wrong.
`;

interface UsersIo {
  readonly open: () => Promise<Store>;
  readonly stdin: Readable;
  readonly stdout: Writable;
  readonly stderr: Pick<NodeJS.WriteStream, 'write'>;
  readonly signal: AbortSignal;
  /** The store as its operator knows it. */
  readonly place: string;
}

/** Runs `sluice users`. Resolves with the exit code. Throws UsageError. */
export async function runUsers(argv: readonly string[], io: UsersIo): Promise<0 | 1> {
  const { values, positionals } = readArguments(argv, {
    'key-file': { type: 'string' },
    replace: { type: 'boolean' },
  });
  const [verb, of, other] = positionals;
  const { 'key-file': keyFile, replace = false } = values;
  if (other !== undefined) throw new UsageError('users takes one URL or file');
  if (verb === 'export' && !replace) return exportUsers(of, keyFile, io);
  if (verb === 'import' && of !== undefined && keyFile === undefined) return importUsers(of, replace, io);
  throw new UsageError('expected: sluice users export, or sluice users import FILE');
}

async function exportUsers(
  url: string | undefined,
  keyFile: string | undefined,
  { open, stdout, stderr, signal }: UsersIo,
): Promise<0> {
  if (url === undefined && keyFile !== undefined) throw new UsageError('--key-file applies only to a URL');
  const key = keyFile === undefined ? null : await readKey(keyFile);
  const users =
    url === undefined
      ? usersAsJson(await (await open()).records(USERS), signal)
      : usersOfServer(serverAt(url), key, signal);
  let count = 0;
  const lines = async function* () {
    for await (const user of users) {
      count++;
      yield `${user}\n`;
    }
  };
  await pipeline(Readable.from(lines()), stdout, { end: false });
  stderr.write(`${countOf(count, 'user')}\n`);
  return 0;
}

async function importUsers(
  file: string,
  replaces: boolean,
  { open, stdin, stderr, signal, place }: UsersIo,
): Promise<0 | 1> {
  const lines = file === '-' ? stdin : createReadStream(file);
  const records = await (await open()).records(USERS);
  const { written, equal, failed, faults } = await takeUsers(records, lines, { replaces, signal });
  for (const fault of faults) stderr.write(`${printable(fault)}\n`);
  if (failed > faults.length) stderr.write(`${failed - faults.length} more like this\n`);
  const said = `${countOf(written, 'user')} written, ${equal} there already, ${failed} failed: ${place}`;
  stderr.write(`${printable(said)}\n`);
  return failed === 0 ? 0 : 1;
}

function serverAt(text: string): URL {
  const isWeb = URL.canParse(text) && /^https?:$/.test(new URL(text).protocol);
  if (!isWeb) throw new UsageError('users export takes the URL of a server, such as http://localhost:3000');
  const url = new URL(text);
  if (url.username !== '' || url.password !== '')
    throw new UsageError(
      'users takes no key in the URL; write the API key to a file and use --key-file FILE',
    );
  url.pathname = `${url.pathname.replace(/\/+$/, '')}${PATH}`;
  return url;
}

/** Users on a page: even the largest ones are then below the longest answer. */
const PAGE = 20;

/** The users of a server, page by page, in order of id. Rejects with Failure. */
async function* usersOfServer(
  url: URL,
  key: string | null,
  signal: AbortSignal,
): AsyncGenerator<string, void, undefined> {
  let cursor = '';
  for (;;) {
    const asked = { limit: String(PAGE), ...(cursor !== '' && { cursor }) };
    url.search = new URLSearchParams(asked).toString();
    const answer = await getJson(url, { compression: 'none', key, signal });
    const { data, page } = Object(answer) as { data?: unknown; page?: Partial<PageInfo> };
    if (!Array.isArray(data) || page?.hasMore === undefined)
      throw new Refusal(`${url.pathname} answered with no page of users`);
    for (const user of data) yield JSON.stringify(user);
    // The last page has a cursor, too.
    if (!page.hasMore) return;
    if (page.nextCursor === cursor || !page.nextCursor)
      throw new Refusal(`${url.pathname} does not go on behind ${cursor}`);
    cursor = page.nextCursor;
  }
}

interface PageInfo {
  readonly hasMore: boolean;
  readonly nextCursor: string | null;
}
