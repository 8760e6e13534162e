import { BSON, Int32 } from '../../../../src/store/values/bson.ts';
import { below, randomFrom } from '../../store/random-collection.ts';

/** The writers of a history. Each has ids of its own, and waits for each of its writes. */
export const WRITERS = 3;
const MOST_TEXT = 700;

/** A write of a row, or the removal of one: `line` is null. */
interface Step {
  readonly id: string;
  readonly line: string | null;
}

/** What one writer does: the same steps on each store. */
export class Script {
  readonly #seed: number;
  readonly #writer: number;
  readonly #ids: number;

  constructor(seed: number, writer: number, ids: number) {
    this.#seed = seed;
    this.#writer = writer;
    this.#ids = ids;
  }

  owns(id: string): boolean {
    return Number(id.slice(1)) % WRITERS === this.#writer;
  }

  /** First each row is written once, in order. */
  step(n: number): Step {
    const random = randomFrom(this.#seed + n * WRITERS + this.#writer);
    const own = n < this.#ids ? n : below(random, this.#ids);
    const id = `o${String(own * WRITERS + this.#writer).padStart(6, '0')}`;
    if (n >= this.#ids && below(random, 4) === 0) return { id, line: null };
    const text = 'lorem ipsum '.repeat(1 + below(random, MOST_TEXT / 12));
    return { id, line: `{"id":"${id}","n":${n},"text":"${text}"}` };
  }
}

/** The document of a line of a script. */
export function documentOf(line: string): Uint8Array {
  const { id, n, text } = JSON.parse(line) as { id: string; n: number; text: string };
  return BSON.serialize({ _id: id, n: new Int32(n), text });
}

/** What a store has acknowledged of a script, with times in milliseconds since 1970. */
export class WrittenRows {
  readonly script: Script;
  readonly #steps: Step[] = [];
  readonly #begun: number[] = [];
  readonly #acknowledged: number[] = [];

  constructor(script: Script) {
    this.script = script;
  }

  get length(): number {
    return this.#acknowledged.length;
  }

  /** Does the next step. `write` resolves when the store has acknowledged it. */
  async next(write: (step: Step) => Promise<void>): Promise<void> {
    const step = this.script.step(this.#steps.length);
    this.#steps.push(step);
    this.#begun.push(Date.now());
    await write(step);
    this.#acknowledged.push(Date.now());
  }

  /** The steps that a store had acknowledged before a time. */
  before(time: number): number {
    const later = this.#acknowledged.findIndex((at) => at >= time);
    return later < 0 ? this.length : later;
  }

  /** When these rows were those of the writer, after how many of its steps. Null: at no time. */
  timeOf(rows: ReadonlyMap<string, string>): WrittenTime | null {
    const wrong = new Set([...rows.keys()].filter((id) => this.script.owns(id)));
    const matches: number[] = [];
    if (wrong.size === 0) matches.push(0);
    for (const [n, { id, line }] of this.#steps.entries()) {
      if ((rows.get(id) ?? null) === line) wrong.delete(id);
      else wrong.add(id);
      if (wrong.size === 0) matches.push(n + 1);
    }
    const [least] = matches;
    const most = matches.at(-1);
    if (least === undefined || most === undefined) return null;
    const from = least === 0 ? 0 : (this.#begun[least - 1] ?? 0);
    return { least, most, from, until: this.#acknowledged[most] ?? Infinity };
  }

  /** The rows behind all steps. */
  rows(): Map<string, string> {
    const rows = new Map<string, string>();
    for (const { id, line } of this.#steps) {
      if (line === null) rows.delete(id);
      else rows.set(id, line);
    }
    return rows;
  }
}

/** The steps and the time, in milliseconds since 1970, in which a writer had certain rows. */
export interface WrittenTime {
  readonly least: number;
  readonly most: number;
  readonly from: number;
  readonly until: number;
}
