import { textOf } from '../../bookmark.ts';
import type { ChangeEvent } from './change-events.ts';
import { isBefore, type Place } from './place.ts';

/** An event, and whether no later one is of the same row. */
interface Entry {
  readonly event: ChangeEvent;
  isLatest: boolean;
}

/** How many events that a later one has replaced may be kept beside as many others. They are removed together. */
const FEW_REPLACED = 1_000;

/**
 * The latest event of each row, in the order in which they happened. A reader looks a row up, and gets its present state,
 * so it needs the row's key only where it changed last. Events without a key are all kept, and events that have the row
 * before: each may show another scope that the row was in.
 */
export class LatestEvents {
  #entries: Entry[] = [];
  readonly #byKey = new Map<string, Entry>();
  #replaced = 0;
  #bytes = 0;

  /** The number of rows, and of events without a key. */
  get count(): number {
    return this.#entries.length - this.#replaced;
  }

  /** The bytes of their keys and places. */
  get bytes(): number {
    return this.#bytes;
  }

  /** The event that happened last. */
  get last(): ChangeEvent | undefined {
    return this.#entries.at(-1)?.event;
  }

  add(event: ChangeEvent): void {
    const entry = { event: owned(event), isLatest: true };
    this.#entries.push(entry);
    this.#bytes += sizeOf(event);
    if (!event.key || event.before) return;
    const name = textOf(event.key);
    const before = this.#byKey.get(name);
    this.#byKey.set(name, entry);
    if (!before) return;
    before.isLatest = false;
    this.#bytes -= sizeOf(before.event);
    this.#replaced++;
    if (this.#replaced > this.count + FEW_REPLACED) this.#removeReplaced();
  }

  behind(place: Place): readonly ChangeEvent[] {
    return this.#entries
      .slice(this.#indexBehind(place))
      .flatMap(({ event, isLatest }) => (isLatest ? event : []));
  }

  /** Removes the older half. Returns the place behind it, or null when there was nothing. */
  dropOldest(): Place | null {
    this.#removeReplaced();
    const dropped = this.#entries.splice(0, Math.ceil(this.#entries.length / 2));
    for (const { event } of dropped) {
      this.#bytes -= sizeOf(event);
      if (event.key && !event.before) this.#byKey.delete(textOf(event.key));
    }
    return dropped.at(-1)?.event.place ?? null;
  }

  clear(): void {
    this.#entries = [];
    this.#replaced = 0;
    this.#bytes = 0;
    this.#byKey.clear();
  }

  #removeReplaced(): void {
    this.#entries = this.#entries.filter(({ isLatest }) => isLatest);
    this.#replaced = 0;
  }

  /** The index of the first event behind a place. */
  #indexBehind(place: Place): number {
    let low = 0;
    let high = this.#entries.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      const entry = this.#entries[middle];
      if (entry && isBefore(place, entry.event.place)) high = middle;
      else low = middle + 1;
    }
    return low;
  }
}

/** The event with bytes of its own: those of a reply are a few of a socket's buffer of 64 KiB, and would keep all of it. */
function owned({ place, key, before, ...rest }: ChangeEvent): ChangeEvent {
  const { hex, typeBits } = place;
  return {
    ...rest,
    place: typeBits ? { hex, typeBits: copyOf(typeBits) } : { hex },
    key: key && copyOf(key),
    ...(before && { before: copyOf(before) }),
  };
}

function copyOf<T extends Uint8Array>(bytes: T): T {
  return new Uint8Array(bytes) as T;
}

function sizeOf({ key, place, before }: ChangeEvent): number {
  return (key?.length ?? 0) + (before?.length ?? 0) + place.hex.length;
}
