import type { Phase } from './figures.ts';
import type { Condition } from './options.ts';
import type { FoundRate } from './result.ts';

/** The rate is doubled until a step breaks, and then halved between. The search ends when both are this close. */
const CLOSE = 1.1;
const MOST_STEPS = 20;

/**
 * Looks for the highest rate at which a condition holds. `step` runs one rate and resolves with whether it held; a rate at
 * which it did not is run a second time, and that decides. Resolves early when the signal is aborted.
 */
export async function findRate(
  condition: Condition,
  start: number,
  step: (rate: number) => Promise<Pick<Phase, 'held' | 'broke'>>,
  signal: AbortSignal,
): Promise<FoundRate> {
  let held: number | null = null;
  let broke: number | null = null;
  let why: string | null = null;
  let rate = start;
  for (let i = 0; i < MOST_STEPS && rate >= 1; i++) {
    const result = await twice(() => step(rate), signal);
    if (!result) break;
    if (result.held) held = rate;
    else {
      broke = rate;
      why = result.broke;
    }
    if (broke === null) rate *= 2;
    else if (held === null) rate = Math.round(rate / 2);
    else if (broke / held <= CLOSE) break;
    else rate = Math.round(Math.sqrt(held * broke));
    if (rate === held || rate === broke) break;
  }
  return { condition: condition.text, held, broke, why };
}

/** The result of a step, or of a second one where the first broke: a busy moment must not become the bound. Null: aborted. */
async function twice<T extends Pick<Phase, 'held'>>(
  step: () => Promise<T>,
  signal: AbortSignal,
): Promise<T | null> {
  const ended = async () => {
    const result = await step();
    return signal.aborted ? null : result;
  };
  const first = await ended();
  return first === null || first.held ? first : ended();
}

/** Whether a phase fulfils a condition, and if not, why. */
export function judgeStep(
  { quantile, belowMs, text }: Condition,
  { counts, pages, client }: Pick<Phase, 'counts' | 'pages' | 'client'>,
): Pick<Phase, 'held' | 'broke'> {
  const value = pages[quantile];
  const bad = counts.refused429 + counts.refused503 + counts.faults4xx + counts.faults5xx;
  const limit = client.cpu > 0.95 ? '; this client was the limit' : '';
  const broke = [
    ...(counts.wrong > 0 ? [`${counts.wrong} answers were wrong`] : []),
    ...(bad > 0 ? [`${bad} answers were refusals or faults`] : []),
    ...(counts.cut > 0 ? [`${counts.cut} answers were cut`] : []),
    ...(counts.unanswered > 0 ? [`${counts.unanswered} requests had no answer`] : []),
    ...(value === null ? ['nothing was answered'] : []),
    ...(value !== null && value >= belowMs ? [`${text}: it was ${value} ms${limit}`] : []),
  ];
  return broke.length === 0 ? { held: true, broke: null } : { held: false, broke: broke.join('; ') };
}
