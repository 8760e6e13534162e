import type { Finding } from '../base/finding.ts';
import { readKey } from '../pull/key-file.ts';
import { Interruption, Refusal } from '../pull/retry.ts';
import { readArguments, UsageError } from '../terminal/arguments.ts';
import { Findings } from '../terminal/findings.ts';
import { quoted } from '../terminal/text.ts';
import { CHANGE_CHECKS } from './changes.ts';
import type { Check } from './check.ts';
import { EDITION_CHECKS } from './editions.ts';
import { Broken, Unseen } from './verdicts.ts';
import { PAGE_CHECKS } from './pages.ts';
import { REFUSAL_CHECKS } from './refusals.ts';
import { subjectAt, type Subject } from './subject.ts';
import { STREAM_CHECKS } from './streams.ts';

export const CONFORM_HELP = `Usage: sluice conform URL [--key-file FILE]

Says whether a server keeps to the protocol of docs/PROTOCOL.md, and by which request that was seen. It never writes, and reads
at most 25,000 rows at a time. What fails is looked at again: ask while few rows change.

  URL              the URL of a resource, such as http://127.0.0.1:3000/items, or of
                   a server: then its first resource with a stream
  --key-file FILE  a file whose first line is the API key

  ok    the promise holds
  skip  this server, or its rows, have nothing by which it could be seen
  FAIL  it does not hold

Exit codes: 0 no FAIL, 1 a FAIL or the server does not answer, 2 wrong usage.
`;

const CHECKS: readonly Check[] = [
  ...STREAM_CHECKS,
  ...PAGE_CHECKS,
  ...REFUSAL_CHECKS,
  ...CHANGE_CHECKS,
  ...EDITION_CHECKS,
];
const OPTIONS = { 'key-file': { type: 'string' } } as const;

/** Runs `sluice conform`. Resolves with the exit code. Throws UsageError. */
export async function runConform(argv: readonly string[], stdout: NodeJS.WritableStream): Promise<0 | 1> {
  const { values, positionals } = readArguments(argv, OPTIONS);
  const [address = '', second] = positionals;
  const url = URL.canParse(address) ? new URL(address) : null;
  if (!url || second !== undefined || !/^https?:$/.test(url.protocol) || url.username + url.password !== '')
    throw new UsageError(
      `conform takes one http or https URL, without a password; it got ${quoted(positionals.join(' '))}`,
    );
  const keyFile = values['key-file'];
  const subject = await subjectAt(url, keyFile === undefined ? null : await readKey(keyFile));
  const findings = new Findings(stdout, { unseen: 'skip', longest: 300 });
  for (const check of CHECKS) findings.report(await findingOf(check, subject));
  return findings.end();
}

/** A check that fails is made again with other rows: these may have changed between two reads. */
async function findingOf(check: Check, subject: Subject): Promise<Finding> {
  const first = await seenBy(check, subject);
  return first.holds === false ? seenBy(check, subject.again()) : first;
}

async function seenBy({ promise, look }: Check, subject: Subject): Promise<Finding> {
  try {
    return { promise, holds: true, seen: await look(subject) };
  } catch (error) {
    if (error instanceof Unseen) return { promise, holds: null, seen: error.message };
    if (error instanceof Broken || error instanceof Refusal || error instanceof Interruption)
      return { promise, holds: false, seen: error.message };
    throw error;
  }
}
