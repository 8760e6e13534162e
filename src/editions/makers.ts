import { AppError, changesUnsupported } from '../base/errors.ts';
import type { EditionHead } from '../base/edition/head.ts';
import type { EditionBuilder, BuilderOptions, EditionSource } from './builder.ts';
import type { Editions, MakingProgress, NewestEdition } from './editions.ts';
import type { EditionMeter } from './meter.ts';
import type { EditionRecord } from './record.ts';
import type { Resource } from '../resources/query/resource.ts';

/** Milliseconds between looks at the records, if nothing is due before. */
const LOOK_MS = 5_000;
const WITHOUT_CHANGES = 'Editions need a store with changes.';
/** How old a head may be that is given. Milliseconds. */
const FRESH_MS = 1_000;

interface MakersOptions extends Pick<BuilderOptions, 'records' | 'objects' | 'pause' | 'log'> {
  readonly builder: Pick<EditionBuilder, 'work'>;
  readonly meter: Pick<EditionMeter, 'note'>;
  /** The resources with editions, as of now, by name. */
  readonly sources: () => ReadonlyMap<string, EditionSource>;
  readonly isPublic: (resource: string) => boolean;
}

interface NotedHead extends NewestEdition {
  readonly is: EditionHead;
  readonly readAt: number;
}

/** Makes the editions of all resources in this process, one after another, and knows the newest of each. */
export class EditionMakers implements Editions {
  readonly objects: Editions['objects'];
  readonly #options: MakersOptions;
  readonly #known = new Map<string, NotedHead>();
  /** Whether the collections have changes, as far as it is known. Without them there are no editions. */
  readonly #support = new WeakMap<Resource, true | AppError>();
  readonly #stop = new AbortController();
  readonly #working: Promise<unknown>;
  /** Ends the rest between looks. */
  #wake = new AbortController();

  constructor(options: MakersOptions) {
    this.objects = options.objects;
    this.#options = options;
    this.#working = Promise.all([this.#workAgainAndAgain(), this.#watchAgainAndAgain()]);
  }

  declared(resource: string): boolean {
    return this.#options.sources().has(resource);
  }

  isPublic(resource: string): boolean {
    return this.#options.isPublic(resource);
  }

  async newest(resource: string, signal: AbortSignal): Promise<NewestEdition | MakingProgress | null> {
    const known = this.#known.get(resource);
    if (known && performance.now() - known.readAt < FRESH_MS) return known;
    const { head, progress } = await this.#options.records.get(resource, signal);
    if (head) return this.#noted(head, this.#known.get(resource));
    this.#assertSupported(resource);
    return progress && { progress };
  }

  async make(resource: string, signal: AbortSignal): Promise<void> {
    signal.throwIfAborted();
    this.#assertSupported(resource);
    await this.#options.records.change(resource, asked);
    this.#wake.abort();
  }

  /** Stops. An edition under way is left to another process. */
  async close(): Promise<void> {
    this.#stop.abort(new Error('the server stops'));
    this.#wake.abort();
    await this.#working;
  }

  /** A read may be of an earlier time than the one before it. */
  #noted(head: EditionHead, known: NotedHead | undefined): NotedHead {
    const isOther = !known || known.is.at < head.at;
    const next = isOther ? { is: head, head: Buffer.from(JSON.stringify(head)) } : known;
    const noted: NotedHead = { is: next.is, head: next.head, readAt: performance.now() };
    this.#known.set(head.resource, noted);
    return noted;
  }

  async #workAgainAndAgain(): Promise<void> {
    const { pause } = this.#options;
    while (!this.#stop.signal.aborted) {
      this.#wake = new AbortController();
      const ms = await this.#work();
      await pause(ms, AbortSignal.any([this.#stop.signal, this.#wake.signal])).catch(() => undefined);
    }
  }

  /** Notes the records for the metrics. Work on one resource may take hours, and other processes work, too. */
  async #watchAgainAndAgain(): Promise<void> {
    const { pause } = this.#options;
    const { signal } = this.#stop;
    while (!signal.aborted) {
      await this.#watch(signal);
      await pause(LOOK_MS, signal).catch(() => undefined);
    }
  }

  async #watch(signal: AbortSignal): Promise<void> {
    const { sources, records, meter, log } = this.#options;
    for (const name of sources().keys())
      try {
        meter.note(name, await records.get(name, signal));
      } catch (error) {
        if (!signal.aborted && !(error instanceof AppError))
          log.error({ resource: name, err: error }, 'the record of editions could not be read');
      }
  }

  /** Whether a collection has changes. Logs once when it does not. Rejects while the store is away. */
  async #supports(resource: Resource): Promise<boolean> {
    const known = this.#support.get(resource);
    if (known !== undefined) return known === true;
    const refusal = await refusalOf(resource, this.#stop.signal);
    if (refusal)
      this.#options.log.warn({ resource: resource.name, reason: refusal.message }, 'editions are not made');
    this.#support.set(resource, refusal ?? true);
    return refusal === null;
  }

  #assertSupported(name: string): void {
    const { resource } = this.#options.sources().get(name) ?? {};
    const known = resource && this.#support.get(resource);
    if (known instanceof AppError) throw known;
  }

  /** Resolves with milliseconds until the next look. */
  async #work(): Promise<number> {
    const { sources, builder, log } = this.#options;
    let least = LOOK_MS;
    for (const source of sources().values()) {
      if (this.#stop.signal.aborted) break;
      try {
        if (!(await this.#supports(source.resource))) continue;
        least = Math.min(least, await builder.work(source, this.#stop.signal));
      } catch (error) {
        // While the store is away requests say so. The next look tries again.
        if (!(error instanceof AppError))
          log.error({ resource: source.resource.name, err: error }, 'editions could not be looked after');
      }
    }
    return Math.max(0, least);
  }
}

/** Why a collection has no editions. Null: it can have them. */
async function refusalOf({ rows }: Resource, signal: AbortSignal): Promise<AppError | null> {
  if (!rows.changes) return changesUnsupported(WITHOUT_CHANGES);
  try {
    await rows.changes.now(signal);
    return null;
  } catch (error) {
    if (!(error instanceof AppError) || error.code !== 'changes-unsupported') throw error;
    return changesUnsupported(`${WITHOUT_CHANGES} ${error.message}`, error);
  }
}

function asked(record: EditionRecord): EditionRecord {
  return record.isAsked ? record : { ...record, isAsked: true };
}
