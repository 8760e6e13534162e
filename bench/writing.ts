import { join } from 'node:path';
import type { Ground } from './kinds/kind.ts';
import { startProcess } from './process.ts';

/** An order to bench/writer.ts. */
export interface WriteOrder {
  readonly updates: number;
  /** The most updates in a second. */
  readonly perSecond: number;
  /** The note of the order behind those that change, after all updates. */
  readonly mark: string;
}

export interface Written {
  /** When it began, in milliseconds since 1970. */
  readonly began: number;
  readonly updates: number;
  readonly seconds: number;
}

export interface Writer {
  write(order: WriteOrder): Promise<Written>;
  stop(): Promise<void>;
}

const WRITER = join(import.meta.dirname, 'writer.ts');

/** Starts a process that changes the first `rows` orders. */
export async function startWriter({ environment }: Ground, rows: number): Promise<Writer> {
  const process = await startProcess({ file: WRITER, args: [String(rows)], environment });
  return {
    write: async (order) => JSON.parse(await process.ask(JSON.stringify(order))) as Written,
    stop: () => process.stop(),
  };
}

let marks = 0;

/** A note that no order had before. */
export function nextMark(): string {
  return `mark-${process.pid}-${++marks}.`;
}
