import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test, type TestContext } from 'node:test';
import { parse } from 'yaml';
import { program } from '../support/process/programs.ts';
import { caseServer, type AskedRequest, type ProtocolCase } from '../support/protocol/case-server.ts';
import {
  LINES_ALONE,
  readByChromium,
  readByPython,
  READERS,
  type Reading,
  type ReadJob,
} from '../support/protocol/readers.ts';

const CASES = ['rows', 'changes', 'files', 'editions'].flatMap(
  (name) => parse(readFileSync(join(import.meta.dirname, `${name}.yaml`), 'utf8')) as ProtocolCase[],
);

/** The key of a client that downloads a file or an edition. */
const KEY = 'k';
/** Seconds. A case whose server is silent for good sets its own. */
const TIMEOUT = 60;
const RETRY_FOR = 120;

/** Where what is no stream of lines is asked for. */
const FILE_PATHS: ReadonlyMap<string, string> = new Map([
  ['file', '/exports/1'],
  ['edition', '/items/edition'],
]);

function isReadBy(reader: string, { except, reads, answers }: ProtocolCase): boolean {
  if (except?.[reader] !== undefined) return false;
  if (FILE_PATHS.has(reads) && LINES_ALONE.has(reader)) return false;
  // The fetch of a browser forgets what has come but was not read yet when a connection is cut.
  return reader !== 'chromium' || answers.every(({ breaks }) => breaks !== 'cut');
}

async function prepared(t: TestContext, reader: string) {
  const cases = CASES.filter((one) => isReadBy(reader, one));
  return Promise.all(
    cases.map(async (one) => {
      const { url, asked } = await caseServer(t, one);
      const { reads, query, since = null, givesUp, timeout = TIMEOUT } = one;
      const filePath = FILE_PATHS.get(reads);
      const isOfSeveral = query?.startsWith('resources=') ?? false;
      const path = filePath ?? (isOfSeveral ? '/changes' : '/items');
      const address = `${url}${path}${query === undefined ? '' : `?${query}`}`;
      const key = filePath === undefined ? null : KEY;
      const job: ReadJob = { reads, url: address, since, key, timeout, retryFor: givesUp ? 0 : RETRY_FOR };
      return { one, asked, job };
    }),
  );
}

const NAMES = ['cursor', 'since', 'limit'];
/** Those of a file, and of an edition, whose files are read whole. */
const HEADERS: Readonly<Record<string, readonly string[]>> = {
  file: ['authorization', 'range', 'if-range'],
  edition: ['authorization', 'cache-control'],
};

/** What a case says of a request. A stream that follows takes as its cursor what changes take as since. */
function askedIn({ reads }: ProtocolCase, { url, headers }: AskedRequest): Record<string, string> {
  const compared = HEADERS[reads];
  if (compared) {
    const named = [...headers].filter(([name]) => compared.includes(name));
    return { path: url.pathname.replace(/^\/(exports\/1\/|items\/)?/, ''), ...Object.fromEntries(named) };
  }
  const named = [...url.searchParams].filter(([name]) => NAMES.includes(name));
  return Object.fromEntries(
    named.map(([name, value]) => [reads === 'changes' && name === 'cursor' ? 'since' : name, value]),
  );
}

/** Compares what a reader gave, asked and said with the case. */
function compare(one: ProtocolCase, asked: readonly AskedRequest[], reading: Reading): void {
  const { name, yields, ends, status, asks } = one;
  const { says } = reading;
  const found = asked.map((request) => askedIn(one, request));
  assert.deepEqual(
    { yields: reading.yields, ends: reading.ends, asks: found },
    { yields, ends, asks },
    `${name}: ${says}`,
  );
  if (status !== undefined) assert.equal(reading.status, status, name);
}

for (const [reader, read] of Object.entries(READERS))
  test(`${reader} reads every case as the protocol says`, async (t) => {
    const ready = await prepared(t, reader);
    const results = await Promise.allSettled(
      ready.map(async ({ one, asked, job }) => {
        const began = performance.now();
        compare(one, asked, await read(job));
        assert.ok(performance.now() - began >= (one.atLeastMs ?? 0), one.name);
      }),
    );
    const failures = results.flatMap((result) =>
      result.status === 'rejected' ? [String(result.reason)] : [],
    );
    assert.equal(failures.join('\n'), '');
  });

test('the Python client reads every case as the protocol says', async (t) => {
  const python = program(t, ['python3'], ['--version']);
  if (python === null) return;
  await compareAll(t, 'python', (jobs) => readByPython(python, jobs));
});

test('sluice.mjs reads every case in Chromium as the protocol says', (t) =>
  compareAll(t, 'chromium', (jobs) => readByChromium(t, jobs)));

async function compareAll(
  t: TestContext,
  reader: string,
  read: (jobs: readonly ReadJob[]) => Promise<readonly Reading[] | null>,
): Promise<void> {
  const ready = await prepared(t, reader);
  const readings = await read(ready.map(({ job }) => job));
  const failures = ready.flatMap(({ one, asked }, n) => (readings ? failureOf(one, asked, readings[n]) : []));
  assert.equal(failures.join('\n'), '');
}

function failureOf(...[one, asked, reading]: [ProtocolCase, readonly AskedRequest[], Reading?]): string[] {
  try {
    assert.ok(reading);
    compare(one, asked, reading);
    return [];
  } catch (error) {
    return [String(error)];
  }
}
