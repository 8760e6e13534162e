import { asksForEditions, asksForItems, isOwn } from '../server/open-rows.ts';
import { readFileSync } from 'node:fs';
import { readConfig, type Config } from '../settings/config.ts';
import { ITEM_COLLECTION } from '../resources/item-collection.ts';
import { nameFault } from '../resources/declarations.ts';
import { leftOutOf, listsOf, locate, locateAll } from '../resources/locate.ts';
import type { Finding } from '../base/finding.ts';
import type { ExaminedDeclaration, ExamineOptions } from '../store/mongo/collection/examine.ts';
import type { Store } from '../store/store.ts';
import { readArguments, UsageError } from '../terminal/arguments.ts';
import { Findings } from '../terminal/findings.ts';
import { examineEditions, hasEditions } from './examine-editions.ts';
import { kernelWarning } from './kernel-warning.ts';

export const DOCTOR_HELP = `Usage: sluice doctor [MONGODB_URI]

Says what the server promises, whether it holds with this store on this machine, and by which query that was seen. It reads the
settings as the server does, and writes nothing but files in the bucket of FILES, which it removes. Without
MONGODB_URI in the settings or as argument: the embedded store in DATA_DIR, all of which is read.

  ok    the promise holds
  warn  it could not be seen, or it does not hold and rows are served without it
  FAIL  it does not hold, and this server needs it

Exit codes: 0 no FAIL, 1 a FAIL or the store does not answer, 2 the command or a setting is wrong.
`;

/** Files of a process beside the sockets of its streams: of the store, the log and other requests. */
const OTHER_FILES = 1_000;

/** Runs `sluice doctor`. Resolves with the exit code. Throws UsageError, and Faults of the settings. */
export async function runDoctor(
  argv: readonly string[],
  environment: NodeJS.ProcessEnv,
  stdout: NodeJS.WritableStream,
): Promise<0 | 1> {
  const [uri, other] = readArguments(argv, {}).positionals;
  if (other !== undefined) throw new UsageError('expected: sluice doctor, or sluice doctor MONGODB_URI');
  const config = readConfig({
    ...environment,
    ...(uri !== undefined && { MONGODB_URI: uri, MONGODB_URI_FILE: '' }),
  });
  const findings = new Findings(stdout, { unseen: 'warn' });
  const { report } = findings;
  machine(config).forEach(report);
  if (config.MONGODB_URI === undefined) {
    const { examineSqlite } = await import('../store/sqlite/file/check.ts');
    await examineSqlite(config.DATA_DIR, report);
  } else {
    const { examineMongo } = await import('../store/mongo/collection/examine.ts');
    const { MONGODB_URI: uri, MONGODB_PREFIX: prefix, MONGODB_MANAGE_INDEXES: indexes } = config;
    const manages = indexes !== 'false';
    const adoptsItems = indexes !== 'auto' || asksForItems(config);
    const served: ExamineOptions['served'] = (store) => collectionsOf(config, store, report);
    const keepsRecords = isOwn(config) || prefix !== undefined;
    const keepsEditions = asksForEditions(config);
    const options = { uri, prefix, manages, adoptsItems, keepsRecords, keepsEditions, served };
    await examineMongo(options, report);
  }
  if (config.filesPlace?.kind === 'bucket') {
    const { examineBucket } = await import('../store/bucket/examine.ts');
    await examineBucket(config.filesPlace, report);
  }
  await examineEditions(config, report);
  if (config.REDIS_URL !== undefined) {
    const { examineRedis } = await import('../redis/examine.ts');
    await examineRedis(config.REDIS_URL, report);
  }
  return findings.end();
}

/** What the kernel grants to a server of these settings that is started as this process was. */
function machine({ MAX_STREAMS }: Config): readonly Finding[] {
  const warning = kernelWarning();
  const files = openFiles();
  const enough = MAX_STREAMS + OTHER_FILES;
  return [
    {
      promise: 'a stalled reader holds 0.2 MB of kernel memory',
      holds: warning === null ? true : null,
      seen: `/proc/sys/net/ipv4/tcp_notsent_lowat: ${warning ?? 'it is limited, or this is not Linux'}`,
    },
    {
      promise: `MAX_STREAMS=${MAX_STREAMS} streams can be open`,
      holds: files !== null && files >= enough ? true : null,
      seen: `/proc/self/limits: ${files === null ? 'not readable' : `this process may open ${files} files, of which it needs ${enough}`}`,
    },
  ];
}

/** How many files this process may open. Null: not known. */
function openFiles(): number | null {
  try {
    const [, most = ''] = /^Max open files +(\S+)/m.exec(readFileSync('/proc/self/limits', 'utf8')) ?? [];
    return most === 'unlimited' ? Infinity : Number(most);
  } catch {
    return null; // not Linux
  }
}

/** The collections that a server of these settings serves. Reports declarations that mean none. */
async function collectionsOf(
  config: Config,
  store: Pick<Store, 'list'>,
  report: (finding: Finding) => void,
): Promise<readonly ExaminedDeclaration[]> {
  const { resources, apiKeys } = config;
  const needsPreImages = (name: string): boolean =>
    apiKeys?.some(({ rights }) => rights.scopes.has(name) && rights.actions.has('changes')) ?? false;
  const found: ExaminedDeclaration[] = [];
  const lists = listsOf(store, false);
  for (const declared of resources) {
    const { pattern, place } = declared;
    const located = pattern
      ? ((await locateAll(pattern, declared, lists)) ?? [])
      : [await locate(declared, lists)];
    if (located.length === 0)
      report({ promise: `${place} names collections`, holds: false, seen: 'listCollections: none matches' });
    const leftOut = pattern ? await leftOutOf(pattern, lists) : [];
    for (const { collection, reason } of leftOut)
      report({ promise: `${place} serves ${collection}`, holds: null, seen: `listCollections: ${reason}` });
    for (const one of located)
      if (typeof one === 'string')
        report({ promise: `${place} names a collection`, holds: false, seen: `listCollections: ${one}` });
      else {
        const { name, database, collection, indexes = [], isOfPattern = false } = one;
        const fault = nameFault(name);
        if (fault !== undefined) {
          const seen = `listCollections: ${fault}; RESOURCES_FILE can give another name`;
          report({ promise: `${place} serves ${collection}`, holds: isOfPattern ? null : false, seen });
          continue;
        }
        found.push({
          name,
          collection,
          indexes,
          needsPreImages: needsPreImages(name),
          hasEditions: hasEditions(config, name, one),
          ...(database !== undefined && { database }),
        });
      }
  }
  if (isOwn(config)) {
    const { name } = ITEM_COLLECTION;
    const editions = hasEditions(config, name, config.itemsMember ?? {});
    found.push({ ...ITEM_COLLECTION, needsPreImages: needsPreImages(name), hasEditions: editions });
  }
  return found;
}
