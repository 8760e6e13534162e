/**
 * A date, and perhaps a time with its zone: ISO 8601, or with a blank for the T and before the zone, as databases print
 * it. Queries, ids in URLs, keys and imports share it: a form for files alone belongs to import/kinds.ts.
 */
const DATE =
  /^(\d{4}|[+-]\d{6})-(\d\d)-(\d\d)(?:[T ](\d\d):(\d\d)(?::(\d\d)(?:[.,](\d+))?)?(?: ?(Z|UTC|[+-]\d\d(?::?\d\d)?))?)?$/i;
const MINUTE_MS = 60_000;

/**
 * The date that a text states, to the millisecond, or the reason why it states none. A date without a time is midnight UTC.
 * A time without a zone would be another one on another machine: it is in UTC with `isUtc`, and else refused.
 */
export function exactDate(text: string, isUtc: boolean): Date | string {
  const moment = momentOf(text, isUtc);
  if (typeof moment === 'string') return moment;
  return moment.isBetween ? 'is more exact than a date, which has milliseconds' : moment.date;
}

/**
 * The first date that is not before the moment that a text states, and whether the moment is between two dates, which have
 * milliseconds. The reason instead when it states none: see exactDate.
 */
export function momentOf(text: string, isUtc: boolean): { date: Date; isBetween: boolean } | string {
  const parts = DATE.exec(text);
  if (!parts) return 'is not a date as 2024-12-31 or 2024-12-31T23:59:59.999Z';
  const [, year = '', month = '', day = '', hours, minutes = '0', seconds = '0', fraction = '', zone] = parts;
  const date = new Date(0);
  date.setUTCFullYear(Number(year), Number(month) - 1, Number(day));
  if (date.getUTCMonth() !== Number(month) - 1 || date.getUTCDate() !== Number(day))
    return 'is not a day of the calendar';
  if (hours === undefined) return { date, isBetween: false };
  if (Number(hours) > 23 || Number(minutes) > 59 || Number(seconds) > 59) return 'is not a time of a day';
  const isBetween = /[1-9]/.test(fraction.slice(3));
  const offset = zone === undefined ? (isUtc ? 0 : null) : offsetOf(zone);
  if (offset === null) return 'has no valid zone (Z or +02:00)';
  const milliseconds = Number(fraction.slice(0, 3).padEnd(3, '0')) + (isBetween ? 1 : 0);
  date.setUTCHours(Number(hours), Number(minutes), Number(seconds), milliseconds);
  const shifted = new Date(date.getTime() - offset * MINUTE_MS);
  return Number.isNaN(shifted.getTime()) ? 'is beyond the range of dates' : { date: shifted, isBetween };
}

/** The distance of a zone from UTC in minutes. null when no zone has it. */
function offsetOf(zone: string): number | null {
  const [, sign, hours = '0', minutes = '0'] = /^([+-])(\d\d):?(\d\d)?$/.exec(zone) ?? [];
  if (Number(hours) > 23 || Number(minutes) > 59) return null;
  return (Number(hours) * 60 + Number(minutes)) * (sign === '-' ? -1 : 1);
}
