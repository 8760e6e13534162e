import type { EditionHead } from '../base/edition/head.ts';
import type { ObjectStore } from '../store/objects.ts';
import { EditionFiles } from './edition-files.ts';
import type { EditionRecord } from './record.ts';

/** How long files stay that no kept edition names: readers of the last one that did fetch them meanwhile. Milliseconds. */
export const LEAVING_MS = 60 * 60_000;

interface PublishOptions {
  readonly objects: ObjectStore;
  readonly resource: string;
  readonly now: () => number;
  /** Throws when the lease is over. Another builder may then need what this one would remove, and have put a newer head. */
  readonly assertHeld: () => void;
}

interface PublishHeadOptions extends PublishOptions {
  /** The head of the record. */
  readonly newest: () => Promise<EditionHead | null>;
}

/**
 * Puts the newest head where readers find it. A put may take longer than the lease, and then end behind that of the next
 * builder: so whoever has put a head looks whether it is still the newest, and else puts that one.
 */
export async function publishHead(
  head: EditionHead,
  { objects, resource, assertHeld, newest }: PublishHeadOptions,
): Promise<void> {
  assertHeld();
  let there = '';
  for (let text = JSON.stringify(head); text !== there; text = JSON.stringify((await newest()) ?? head)) {
    await objects.put(`${resource}/edition.json`, Buffer.from(text));
    there = text;
  }
}

/**
 * Removes files that neither a kept edition names, nor one that was kept in the last hour, nor a walk that was interrupted, and
 * that were stored more than an hour ago: who makes an edition puts what none names. For the holder of the lease.
 */
export async function sweep(
  record: EditionRecord,
  { objects, resource, now, assertHeld }: PublishOptions,
): Promise<number> {
  const named = await namedBy(record, new EditionFiles(objects, resource), now());
  let removed = 0;
  for (const folder of ['chunks', 'edition'])
    for await (const { path, storedAt } of objects.list(`${resource}/${folder}/`)) {
      if (named.has(path) || storedAt > now() - LEAVING_MS) continue;
      assertHeld();
      await objects.remove(path);
      removed++;
    }
  return removed;
}

async function namedBy(
  { head, leaving }: EditionRecord,
  files: EditionFiles,
  now: number,
): Promise<ReadonlySet<string>> {
  const gone = leaving.filter(({ until }) => until > now);
  const all: EditionRecord['leaving'] = [
    ...(head?.kept ?? []).map(({ edition }) => ({ edition, until: now })),
    ...gone,
  ];
  const named = new Set<string>();
  const note = async (one: EditionHead): Promise<void> => {
    named.add(files.headPath(one.edition));
    for (const path of (await files.contents(one)).paths) named.add(path);
  };
  if (head) await note(head);
  for (const { edition, schema } of all) {
    const one = await files.head(edition);
    if (one) await note(schema === undefined ? one : { ...one, schema });
  }
  const walk = await files.work(); // one that was interrupted goes on with its chunks, however old they are
  for (const path of walk ? files.chunkPaths(walk.chunks, walk.table?.schema.name) : []) named.add(path);
  return named;
}

/** The editions whose files are to stay for a while, when a head takes the place of another. */
export function leavingBehind(
  record: EditionRecord,
  next: EditionHead,
  now: number,
): EditionRecord['leaving'] {
  const { head, leaving } = record;
  const kept = new Set([next.edition, ...next.kept.map(({ edition }) => edition)]);
  const before = head ? [head.edition, ...head.kept.map(({ edition }) => edition)] : [];
  const until = now + LEAVING_MS;
  const fresh: EditionRecord['leaving'] = before
    .filter((edition) => !kept.has(edition))
    .map((edition) => ({ edition, until }));
  // Its rows stay, in other columns.
  const isRemade = head?.edition === next.edition && head.schema !== next.schema;
  const remade =
    isRemade && head.schema !== undefined ? [{ edition: head.edition, until, schema: head.schema }] : [];
  const stay = leaving.filter(
    (one) => one.until > now && (one.schema !== undefined || !kept.has(one.edition)),
  );
  return [...stay, ...fresh, ...remade];
}
