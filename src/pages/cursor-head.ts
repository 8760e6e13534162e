import type { Plan, PointInTime } from '../store/store.ts';
import { MARK_BYTES } from './mark.ts';

/** What stands in a cursor's token before its bookmark, beside the fingerprint. */
interface Form {
  /** The time of the rows: a point in time, or the earliest time that reads may see. */
  readonly time?: 'at' | 'since';
  readonly isMarked?: true;
}

/** The forms by the version of their token. Versions are never given to another form. */
const FORMS: ReadonlyMap<number, Form> = new Map<number, Form>([
  [5, {}],
  [6, { time: 'at' }],
  [7, { isMarked: true }],
  [8, { time: 'at', isMarked: true }],
  [12, { time: 'since' }],
  [13, { time: 'since', isMarked: true }],
]);

export const VERSIONS = [...FORMS.keys()];

const TIME_BYTES = 8;

/** The version and the time of a plan's cursor. */
export function headOf(
  plan: Plan,
  isMarked: boolean,
): { readonly version: number; readonly time: readonly Uint8Array[] } {
  const { at, since } = plan;
  const time = at !== undefined ? 'at' : since !== undefined ? 'since' : undefined;
  for (const [version, form] of FORMS)
    if (form.time === time && !!form.isMarked === isMarked) return { version, time: timeBytes(at ?? since) };
  throw new TypeError('every plan has a form');
}

/** Splits a content behind its fingerprint into time, mark and bookmark. Null when it is too short. */
export function splitHead(
  version: number,
  content: Buffer,
): {
  readonly times: { readonly at?: PointInTime; readonly since?: PointInTime };
  readonly mark?: number;
  readonly rest: Buffer;
} | null {
  const { time, isMarked } = FORMS.get(version) ?? {};
  const markAt = time ? TIME_BYTES : 0;
  const head = markAt + (isMarked ? MARK_BYTES : 0);
  if (content.length < head) return null;
  return {
    times: time ? { [time]: content.readBigUInt64LE(0) } : {},
    ...(isMarked && { mark: content.readUInt32LE(markAt) }),
    rest: content.subarray(head),
  };
}

function timeBytes(time: PointInTime | undefined): readonly Uint8Array[] {
  if (time === undefined) return [];
  const bytes = Buffer.allocUnsafe(TIME_BYTES);
  bytes.writeBigUInt64LE(time);
  return [bytes];
}
