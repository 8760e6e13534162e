import type { Readable } from 'node:stream';
import { StringDecoder } from 'node:string_decoder';
import { AppError } from '../base/errors.ts';
import { reasonOf } from '../base/error-reason.ts';
import { chain, FIRST_BATCH } from '../pipeline/chain.ts';
import { rowToJson } from '../rows/row-json.ts';
import { rowsOf } from '../store/batch.ts';
import type { Plan } from '../store/plan.ts';
import type { Records } from '../store/records.ts';
import { toRow } from './row.ts';
import { checkedUser, isUserId, type UserBody } from './user.ts';

const BY_ID: Plan = { sort: '_id', direction: 1 };

/** The users of a store in order of id, each as the JSON that clients get. */
export async function* usersAsJson(
  records: Records,
  signal: AbortSignal,
): AsyncGenerator<string, void, undefined> {
  const first = await records.read(BY_ID, {}, FIRST_BATCH, signal);
  for await (const batch of chain(records, BY_ID, first, Infinity, signal)) {
    try {
      for (const row of rowsOf(batch)) yield rowToJson(row);
    } finally {
      batch.release();
    }
  }
}

/** How users came into a store, and the first faults, each with the number of its line. */
interface Arrival {
  written: number;
  /** They were there with the same content. */
  equal: number;
  failed: number;
  readonly faults: string[];
}

/** The most faults that are told. */
const MOST_FAULTS = 10;

/**
 * Writes users from lines of JSON, with their ids and times: so their ETags are those of before. A user that is there with
 * other content is a fault, unless `replaces`. Rejects as the store does.
 */
export async function takeUsers(
  records: Records,
  lines: Readable,
  { replaces, signal }: { readonly replaces: boolean; readonly signal: AbortSignal },
): Promise<Arrival> {
  const arrival: Arrival = { written: 0, equal: 0, failed: 0, faults: [] };
  let number = 0;
  for await (const line of linesOf(lines)) {
    signal.throwIfAborted();
    number++;
    if (line.trim() === '') continue;
    try {
      arrival[await takeUser(records, line, replaces)]++;
    } catch (error) {
      if (!(error instanceof LineFault)) throw error;
      arrival.failed++;
      if (arrival.faults.length < MOST_FAULTS) arrival.faults.push(`line ${number}: ${error.message}`);
    }
  }
  return arrival;
}

/** Without node:readline: since Node 24 that also ends lines at U+2028 and U+2029, which texts of JSON may have. */
async function* linesOf(input: Readable): AsyncGenerator<string, void, undefined> {
  const decoder = new StringDecoder();
  let rest = '';
  for await (const piece of input as AsyncIterable<Buffer | string>) {
    const lines = (rest + decoder.write(piece)).split('\n');
    rest = lines.pop() ?? '';
    yield* lines;
  }
  yield rest + decoder.end();
}

/** What is wrong with a line. */
class LineFault extends Error {
  override readonly name = 'LineFault';
}

async function takeUser(records: Records, line: string, replaces: boolean): Promise<'written' | 'equal'> {
  const { id, row } = readUser(line);
  const isEqual = (current: Uint8Array | null) => current !== null && Buffer.compare(current, row) === 0;
  const { before } = await records.change(id, (current) => {
    if (isEqual(current)) return 'keep';
    if (current !== null && !replaces)
      throw new LineFault(`a user ${id} with other content exists: --replace replaces it`);
    return row;
  });
  return isEqual(before) ? 'equal' : 'written';
}

/** Throws LineFault. */
function readUser(line: string): { readonly id: string; readonly row: Uint8Array } {
  const { id, createdAt, updatedAt, ...body } = objectIn(line);
  if (typeof id !== 'string' || !isUserId(id)) throw new LineFault('id must be that of a user');
  const times = { createdAt: dateOf('createdAt', createdAt), updatedAt: dateOf('updatedAt', updatedAt) };
  try {
    const { name, email, metadata } = checkedUser(body as unknown as UserBody);
    return { id, row: toRow({ _id: id, name, email, ...(metadata && { metadata }), ...times }) };
  } catch (error) {
    if (!(error instanceof AppError)) throw error;
    throw new LineFault(error.message, { cause: error });
  }
}

function objectIn(line: string): Readonly<Record<string, unknown>> {
  let value: unknown;
  try {
    value = JSON.parse(line);
  } catch (error) {
    throw new LineFault(`no JSON: ${reasonOf(error)}`, { cause: error });
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    throw new LineFault('expected an object of JSON for each user');
  return value as Readonly<Record<string, unknown>>;
}

/** A time as users show it: only what is written again as the same text keeps the ETag. */
function dateOf(name: string, text: unknown): Date {
  const date = new Date(typeof text === 'string' ? text : NaN);
  if (Number.isNaN(date.getTime()) || date.toISOString() !== text)
    throw new LineFault(`${name} must be a time such as 2026-11-29T01:02:03.004Z`);
  return date;
}
