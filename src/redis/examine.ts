import { once } from 'node:events';
import { reasonOf } from '../base/error-reason.ts';
import type { Finding } from '../base/finding.ts';
import { connectRedis, mastersOf, type RedisConnection } from './connect.ts';
import { readRedisUrl } from './url.ts';

/** How long Redis may take until it answers. Milliseconds. */
const ANSWER_MS = 5_000;

/** Asks Redis what it is, and writes nothing. Reports which promises about limits and the queue hold there. */
export async function examineRedis(url: string, report: (finding: Finding) => void): Promise<void> {
  const errors: string[] = [];
  const onError = (error: Error): void => void errors.push(error.message);
  const connection = connectRedis(url, { waits: true, maxRetriesPerRequest: 1, onError });
  const promise = 'servers on this Redis share limits and the queue of exports';
  try {
    const masters = await answersOf(connection);
    report({ promise, holds: true, seen: `INFO: ${counted(masters.length, 'master')} answered` });
    report(evictionOf(masters));
    if (readRedisUrl(url)?.kind !== 'server') report(successionOf(masters));
  } catch (error) {
    // What a connection said says more than that it was waited for.
    report({ promise, holds: false, seen: `INFO: ${errors[0] ?? reasonOf(error)}` });
  } finally {
    connection.close();
  }
}

/** The members of INFO of each master. Rejects when Redis does not answer. */
async function answersOf(connection: RedisConnection): Promise<ReadonlyMap<string, string>[]> {
  const signal = AbortSignal.timeout(ANSWER_MS);
  if (connection.status !== 'ready') await once(connection, 'ready', { signal });
  const late = once(signal, 'abort').then(() => {
    throw new Error(`no answer within ${ANSWER_MS} ms`);
  });
  late.catch(() => undefined); // the race reports it
  const texts = Promise.all(mastersOf(connection).map((master) => master.info()));
  return (await Promise.race([texts, late])).map(membersOf);
}

function membersOf(text: string): ReadonlyMap<string, string> {
  return new Map(
    text.split('\r\n').map((line) => {
      const [name = '', value = ''] = line.split(':');
      return [name, value] as const;
    }),
  );
}

/** A message that Redis drops is offered again by the next look through all exports, so this is no FAIL. */
function evictionOf(masters: readonly ReadonlyMap<string, string>[]): Finding {
  const policies = [...new Set(masters.map((one) => one.get('maxmemory_policy') ?? 'not told'))];
  return {
    promise: 'Redis keeps counters and messages of the queue when its memory is full',
    holds: policies.join() === 'noeviction' ? true : null,
    seen: `INFO memory: maxmemory_policy is ${policies.join(', ')}; noeviction is needed`,
  };
}

function successionOf(masters: readonly ReadonlyMap<string, string>[]): Finding {
  const replicas = masters.map((one) => Number(one.get('connected_slaves')));
  const all = replicas.reduce((sum, one) => sum + one, 0);
  return {
    promise: 'another server takes over when a master of Redis ends',
    holds: replicas.every((one) => one > 0) ? true : null,
    seen: `INFO replication: ${counted(masters.length, 'master')}, ${counted(all, 'replica')}`,
  };
}

function counted(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? '' : 's'}`;
}
