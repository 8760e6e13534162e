import { createHash } from 'node:crypto';
import { Finder } from '../../src/load/finder.ts';
import { readStream, verifyStream } from '../reader.ts';
import { startUsage, sumOfUsages } from '../usage.ts';
import { pidsOf, urlOf, type Kind } from './kind.ts';

/**
 * The whole set by a stream that follows, up to its changes, beside one with checkpoints: both prove their rows by a CRC,
 * which a plain stream does not make. Counts rows.
 */
export interface FollowWalkScenario {
  readonly kind: 'follow-walk';
  readonly path: string;
}

/** A checkpoint says so when all rows have come, and all that changed meanwhile. */
const UP_TO_DATE = '"upToDate":true';
const CHECKPOINT = /^\{"checkpoint":\{.*\}\}\n/gm;

export const followWalk: Kind<FollowWalkScenario> = {
  /** Both streams have the same rows in the same order. */
  async check(job) {
    const plain = urlOf(job) + job.scenario.path;
    const { rows, bytes, md5 } = await verifyStream(plain, 'identity');
    const hash = createHash('md5');
    let rest = '';
    await read(`${plain}?follow=true`, UP_TO_DATE, (piece) => {
      const text = rest + Buffer.from(piece).toString('latin1');
      const end = text.lastIndexOf('\n') + 1;
      rest = text.slice(end);
      hash.update(text.slice(0, end).replace(CHECKPOINT, ''), 'latin1');
    });
    const followed = hash.digest('hex');
    if (followed !== md5) throw new Error(`${job.subject.name}: a stream that follows has other rows`);
    return { text: `${rows} rows, ${bytes} bytes, md5 ${md5}`, rows, bytes };
  },

  needsWarmth: () => true,

  /**
   * Both are timed to the last row by the same reader, which looks for it in all bytes. They are read by turns until those
   * that follow took the seconds of a round, so that a change of the machine's speed affects both alike.
   */
  async measure(job, { rows, bytes }) {
    const plain = urlOf(job) + job.scenario.path;
    const last = await lastId(plain);
    const readProved = async () => (await read(`${plain}?checkpoints=true`, last)).seconds;
    const readFollowed = async () => {
      const endUsage = startUsage(pidsOf(job));
      const { bytes: came, seconds } = await read(`${plain}?follow=true`, last);
      if (came > bytes) return { seconds, usage: endUsage() };
      throw new Error(`${job.subject.name}: ${came} bytes came where more than ${bytes} were expected`);
    };
    const proved = [await readProved()];
    const followed: Awaited<ReturnType<typeof readFollowed>>[] = [];
    do {
      followed.push(await readFollowed());
      proved.push(await readProved());
    } while (sum(followed.map(({ seconds }) => seconds)) < job.effort.seconds);
    const seconds = sum(followed.map((one) => one.seconds));
    const provedSeconds = sum(proved) / proved.length;
    const ofProved = (provedSeconds * followed.length) / seconds;
    return {
      seconds,
      count: rows * followed.length,
      usage: sumOfUsages(followed.map(({ usage }) => usage)),
      figures: { ofProved, provedPerSecond: rows / provedSeconds },
    };
  },
};

/** The end of a stream that follows: the whole text of the last row's id. */
async function lastId(stream: string): Promise<string> {
  const page = `${stream.replace(/\/stream$/, '')}?limit=1&sort=id_desc&fields=id`;
  const { data } = (await (await fetch(page)).json()) as { data: readonly { id: string }[] };
  return JSON.stringify({ id: data[0]?.id }).slice(0, -1);
}

/** Reads a stream until a text has come. */
function read(url: string, until: string, onPiece?: (piece: Uint8Array) => void) {
  const finder = new Finder(until);
  return readStream(url, 'identity', onPiece, (_bytes, piece) => finder.isIn(piece));
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, one) => total + one, 0);
}
