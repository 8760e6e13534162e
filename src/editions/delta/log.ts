import type { Face, TableEdition } from '../face.ts';
import { commitOf, stateOf, type Action, type CommitInfo, type Remove } from './actions.ts';
import { LogFiles, type LogObjects } from './log-files.ts';

/** So many commits a reader reads at most, behind a checkpoint. */
const CHECKPOINT_EVERY = 100;

/** The table has a version that is not an edition of this resource. */
export class ForeignVersionError extends Error {
  override readonly name = 'ForeignVersionError';
}

/**
 * The Delta table of a resource: `{resource}/_delta_log/`. The version of an edition is its sequence. It is a commit on the
 * version before it. Where there is none, because the table is new to a resource that had editions, or their records were
 * lost, it is a checkpoint, with which a table begins anew: a commit would be read on top of older rows.
 */
export class DeltaLog implements Face {
  readonly #objects: LogObjects;

  constructor(objects: LogObjects) {
    this.#objects = objects;
  }

  async commit(edition: TableEdition, previous: TableEdition | null): Promise<void> {
    const { head } = edition;
    const before = previous?.head.sequence === head.sequence - 1 ? previous : null;
    const log = await LogFiles.list(this.#objects, head.resource);
    if (before && log.newest < before.head.sequence) await this.#publish(log, before, null);
    await this.#publish(log, edition, before);
    await this.#tend(log, edition);
  }

  async #publish(log: LogFiles, edition: TableEdition, before: TableEdition | null): Promise<void> {
    const { sequence } = edition.head;
    const isNext = sequence === 0 || log.newest === before?.head.sequence;
    if (log.newest >= sequence) {
      await this.#prove(log, edition);
    } else if (isNext) {
      const isNew = await log.putCommit(sequence, commitOf(edition, before));
      if (!isNew) await this.#prove(log, edition);
    } else {
      await log.putCheckpoint(sequence, stateOf(edition, []));
    }
  }

  /** Throws when a version is there that neither this edition nor a later one of its resource made. */
  async #prove(log: LogFiles, { head }: TableEdition): Promise<void> {
    const own = await log.commit(head.sequence);
    const isOwn = !own || commitInfo(own)?.edition === head.edition;
    // A head whose rows stay gets a later time than its own version has.
    const newest = log.newest > head.sequence ? await log.commit(log.newest) : null;
    const isLater = !newest || (commitInfo(newest)?.timestamp ?? 0) >= Date.parse(head.at);
    if (isOwn && isLater) return;
    throw new ForeignVersionError(
      `The Delta log of ${head.resource} has versions that are no editions of it: another program wrote into ${log.folder}, or the records of its editions were lost. Remove this folder, and the table begins anew with the next edition`,
    );
  }

  /** Writes the checkpoint that is due, and removes what only editions need that are not kept. */
  async #tend(log: LogFiles, edition: TableEdition): Promise<void> {
    const { sequence, kept } = edition.head;
    if (log.newest !== sequence) return; // the builder of a later edition does it
    const oldest = sequence - kept.length;
    if (sequence - Math.max(0, log.newestCheckpoint) >= CHECKPOINT_EVERY) {
      const removed = await tombstones(log, oldest + 1, sequence);
      await log.putCheckpoint(sequence, stateOf(edition, removed));
    }
    await log.removeBefore(oldest);
  }
}

/** The removals of files that versions before these have. */
async function tombstones(log: LogFiles, from: number, to: number): Promise<Remove[]> {
  const found = new Map<string, Remove>();
  for (let version = Math.max(0, from); version <= to; version++)
    for (const action of (await log.commit(version)) ?? [])
      if ('remove' in action) found.set(action.remove.path, action.remove);
  return [...found.values()];
}

function commitInfo(actions: readonly Action[]): CommitInfo | undefined {
  for (const action of actions) if ('commitInfo' in action) return action.commitInfo;
  return undefined;
}
