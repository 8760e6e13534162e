import { counted } from '../terminal/text.ts';
import type { Counts, Second } from './figures.ts';
import type { Faults } from './faults.ts';
import type { Followers, ShownOptions, Target, Verdict } from './result.ts';

interface Judgement {
  readonly counts: Counts;
  readonly series: readonly Second[];
  readonly faults: Faults;
  readonly target: Target;
  readonly options: ShownOptions;
  readonly followers: Followers | null;
  /** Why the run ended early. null: it did not, or the user ended it. */
  readonly failure: string | null;
  /** Whether the user ended it. */
  readonly isInterrupted: boolean;
}

/** A client that uses more of a core is taken for the limit. */
const MOST_CPU = 0.9;
/** A delay of the event loop that is seen in the latencies. Milliseconds. */
const LONG_DELAY_MS = 20;
/** In this share of the seconds. */
const OFTEN = 0.1;

/** Judges a run by its answers, and says where its figures may mislead. */
export function verdictOf(judged: Judgement): Verdict {
  const { counts, failure } = judged;
  const reasons = [...(failure === null ? [] : [failure]), ...reasonsOf(judged)];
  return {
    exitCode: counts.wrong > 0 ? 2 : reasons.length > 0 ? 1 : 0,
    reasons,
    clientLimits: clientLimitsOf(judged.series),
    notes: notesOf(judged),
  };
}

function reasonsOf({ counts, faults, options, target, followers, isInterrupted }: Judgement): string[] {
  const limit = target.rateLimit;
  const allowed = limit
    ? `; the rate limit is ${counted(limit.requests)} requests in ${limit.windowSeconds} s`
    : '';
  const lineOf = (name: 'wrong' | 'cut' | 'faults4xx' | 'faults5xx') => {
    const texts = faults.of(name);
    return texts.length > 0 ? `: ${texts.join('; ')}` : '';
  };
  const all: readonly [number, string, string][] = [
    [counts.wrong, 'wrong', lineOf('wrong')],
    [options.expectRefusals ? 0 : counts.refused429, 'refused with 429', allowed],
    [options.expectRefusals ? 0 : counts.refused503, 'refused with 503', ''],
    [counts.faults4xx, 'answered with another 4xx', lineOf('faults4xx')],
    [counts.faults5xx, 'answered with another 5xx', lineOf('faults5xx')],
    [counts.cut, 'cut or not reached', lineOf('cut')],
    [isInterrupted ? 0 : counts.unanswered, 'not answered before the end', ''],
  ];
  const requests = all
    .filter(([count]) => count > 0)
    .map(
      ([count, what, why]) =>
        `${counted(count)} ${count === 1 ? 'request was' : 'requests were'} ${what}${why}`,
    );
  return [...requests, ...(followers ? writeReasons(followers, faults) : [])];
}

function writeReasons({ writes, failedWrites, missed, reached }: Followers, faults: Faults): string[] {
  const reasons: string[] = [];
  if (failedWrites > 0)
    reasons.push(`${counted(failedWrites)} writes failed: ${faults.of('write').join('; ')}`);
  if (missed > 0 && reached === 0)
    reasons.push(
      `no line of ${counted(writes)} writes reached a follower: what is followed must be the users that --write writes`,
    );
  else if (missed > 0) reasons.push(`lines of writes missed by their followers: ${counted(missed)}`);
  return reasons;
}

function clientLimitsOf(series: readonly Second[]): string[] {
  const limits: string[] = [];
  const cpu = series.reduce((sum, { client }) => sum + client.cpu, 0) / Math.max(1, series.length);
  if (cpu > MOST_CPU)
    limits.push(
      `this client used ${Math.round(cpu * 100)} % of a core: divide the load among several clients`,
    );
  const late = series.filter(({ client }) => client.loopDelay > LONG_DELAY_MS).length;
  if (late > series.length * OFTEN)
    limits.push(
      `this client was late by more than ${LONG_DELAY_MS} ms in ${late} of ${series.length} seconds: run it on another machine than the server, or with less load`,
    );
  return limits;
}

function notesOf({ series, options, target, counts, isInterrupted }: Judgement): string[] {
  const notes: string[] = [];
  if (options.model === 'closed')
    notes.push(
      'a closed model: while the server is slow, fewer requests are sent, so the latencies hide what users would wait',
    );
  const busy = series.filter(({ waiting }) => waiting > options.connections).length;
  if (options.model === 'open' && busy > series.length * OFTEN)
    notes.push(
      `all ${options.connections} connections were busy in ${busy} of ${series.length} seconds; requests then wait for one, which counts`,
    );
  if (!target.metrics.reachable)
    notes.push(`nothing is known of the server's side: ${target.metrics.reason}`);
  if (isInterrupted && counts.unanswered > 0)
    notes.push(
      `${counted(counts.unanswered)} ${counts.unanswered === 1 ? 'request' : 'requests'} had no answer yet when the test was interrupted`,
    );
  if (counts.unproved > 0)
    notes.push(
      `${counted(counts.unproved)} streams have no checkpoints; only HTTP and their form say that they are whole`,
    );
  return notes;
}
