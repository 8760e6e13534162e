/** Durations are written as a number and a unit: `20 s`, `5 min`, `24 h`. The program has them in milliseconds. */
export const DURATION = '^\\d{1,9} ?(ms|s|min|h)$';

export const DURATION_WORDS = 'a duration such as "20 s", "5 min" or "24 h"';

/** The milliseconds of a duration. */
export function milliseconds(text: string): number {
  const unit = text.replace(/^\d+ ?/, '');
  return parseInt(text, 10) * ({ ms: 1, s: 1000, min: 60_000, h: 3_600_000 }[unit] ?? NaN);
}
