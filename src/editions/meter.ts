import type { EditionValues } from '../telemetry/edition-metrics.ts';
import type { MakingProgress } from './editions.ts';
import type { EditionRecord } from './record.ts';

/** What this process has done for the editions of a resource, and the record as it was read last. */
interface EditionCounts {
  record: EditionRecord | null;
  /** Chunks that were read again or for the first time, and those of them of which a file was stored. */
  read: number;
  stored: number;
  failures: number;
}

/** Counts the editions that a process makes. */
export class EditionMeter {
  readonly #all = new Map<string, EditionCounts>();

  /** What the metrics show, by the names of resources. `now`: milliseconds since 1970. */
  values(now: number): ReadonlyMap<string, EditionValues> {
    return new Map([...this.#all].map(([resource, counts]) => [resource, valuesOf(counts, now)]));
  }

  /** Notes the record of a resource. One that is older than what is known says nothing. */
  note(resource: string, record: EditionRecord): void {
    const counts = this.#of(resource);
    const known = counts.record?.head?.at ?? '';
    if ((record.head?.at ?? '') >= known) counts.record = record;
  }

  failed(resource: string): void {
    this.#of(resource).failures++;
  }

  /** An attempt at an edition begins. */
  begin(resource: string): Attempt {
    return new Attempt(this.#of(resource));
  }

  #of(resource: string): EditionCounts {
    const known = this.#all.get(resource) ?? { record: null, read: 0, stored: 0, failures: 0 };
    this.#all.set(resource, known);
    return known;
  }
}

/** What one attempt at an edition has done so far. */
export class Attempt {
  read = 0;
  stored = 0;
  /** How far the walk over all rows has come. Null: there is none. */
  walk: MakingProgress['progress'] | null = null;
  readonly #counts: Pick<EditionCounts, 'read' | 'stored'>;

  constructor(counts: Pick<EditionCounts, 'read' | 'stored'>) {
    this.#counts = counts;
  }

  chunkRead(rows: number, bytes: number): void {
    this.read++;
    this.#counts.read++;
    if (this.walk) this.walk = { ...this.walk, rows: this.walk.rows + rows, bytes: this.walk.bytes + bytes };
  }

  chunkStored(): void {
    this.stored++;
    this.#counts.stored++;
  }
}

function valuesOf({ record, read, stored, failures }: EditionCounts, now: number): EditionValues {
  const { head, progress, lastMs } = record ?? { head: null, progress: null, lastMs: null };
  return {
    read,
    stored,
    failures,
    ...(head && {
      age: Math.max(0, now - Date.parse(head.at)) / 1000,
      sequence: head.sequence,
      rows: head.rows,
    }),
    ...(lastMs !== null && { attempt: lastMs / 1000 }),
    ...(progress && { walked: progress.rows }),
    ...(typeof progress?.of === 'number' && { expected: progress.of }),
  };
}
