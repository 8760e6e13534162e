import { Mismatch, Refusal, type Interruption } from '../pull/retry.ts';
import type { Counts } from './figures.ts';

/** How an answer ended. */
export type Outcome = Exclude<keyof Counts, 'arrivals'>;

/** Counts that grow. */
export type Counting = { -readonly [Name in keyof Counts]: number };

export function noCounts(): Counting {
  return {
    arrivals: 0,
    ok: 0,
    notModified: 0,
    refused429: 0,
    refused503: 0,
    faults4xx: 0,
    faults5xx: 0,
    cut: 0,
    unanswered: 0,
    wrong: 0,
    unproved: 0,
  };
}

/** What a status stands for, when it is neither 200 nor an expected 304. */
export function outcomeOf(status: number): Outcome {
  if (status === 429) return 'refused429';
  if (status === 503) return 'refused503';
  return status >= 500 ? 'faults5xx' : 'faults4xx';
}

/** What a failure of a stream stands for. A server that breaks its own promise is `wrong`, even if a pull gives up. */
export function outcomeOfFailure(failure: Interruption | Refusal): Outcome {
  if (failure.status !== undefined) return outcomeOf(failure.status);
  return failure instanceof Mismatch || failure instanceof Refusal ? 'wrong' : 'cut';
}
