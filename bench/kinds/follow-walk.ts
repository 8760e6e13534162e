import { createHash } from 'node:crypto';
import { Finder } from '../../src/load/finder.ts';
import { readStream, verifyStream } from '../reader.ts';
import { startUsage } from '../usage.ts';
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
    await follow(plain, (piece) => {
      const text = rest + Buffer.from(piece).toString('latin1');
      const end = text.lastIndexOf('\n') + 1;
      rest = text.slice(end);
      hash.update(text.slice(0, end).replace(CHECKPOINT, ''), 'latin1');
    });
    const followed = hash.digest('hex');
    if (followed !== md5) throw new Error(`${job.subject.name}: a stream that follows has other rows`);
    return { text: `${rows} rows, ${bytes} bytes, md5 ${md5}`, rows, bytes };
  },

  /**
   * Both are timed to the last row. The stream with checkpoints is read before and after, so that a change of the machine's
   * speed affects both alike.
   */
  async measure(job, { rows, bytes }) {
    const plain = urlOf(job) + job.scenario.path;
    const last = await lastId(plain);
    const proved = `${plain}?checkpoints=true`;
    const before = await readStream(proved, 'identity');
    const endUsage = startUsage(pidsOf(job));
    const followed = await follow(plain, undefined, last);
    const usage = endUsage();
    const after = await readStream(proved, 'identity');
    if (followed.bytes <= bytes)
      throw new Error(
        `${job.subject.name}: ${followed.bytes} bytes came where more than ${bytes} were expected`,
      );
    const provedSeconds = (before.seconds + after.seconds) / 2;
    return {
      seconds: followed.seconds,
      count: rows,
      usage,
      figures: { ofProved: provedSeconds / followed.seconds, provedPerSecond: rows / provedSeconds },
    };
  },
};

/** The end of a stream that follows: the whole text of the last row's id. */
async function lastId(stream: string): Promise<string> {
  const page = `${stream.replace(/\/stream$/, '')}?limit=1&sort=id_desc&fields=id`;
  const { data } = (await (await fetch(page)).json()) as { data: readonly { id: string }[] };
  return JSON.stringify({ id: data[0]?.id }).slice(0, -1);
}

function follow(plain: string, onPiece?: (piece: Uint8Array) => void, until = UP_TO_DATE) {
  const finder = new Finder(until);
  return readStream(`${plain}?follow=true`, 'identity', onPiece, (_bytes, piece) => finder.isIn(piece));
}
