import { keyToJson } from '../../rows/row-json.ts';
import { count, namedObject, object, text, Type } from '../../base/schema.ts';
import type { Bookmark } from '../../store/bookmark.ts';
import type { ControlForm, EndTally, Sums } from '../../pipeline/control-lines.ts';

const TALLY = {
  cursor: text('the cursor that continues here'),
  upToDate: Type.Boolean({
    description: 'whether the copy then equals the set, as it was when this line was made',
  }),
  rows: count('the number of rows since the start of this response'),
  removed: count('the number of removals since the start of this response'),
  bytes: count('the number of bytes in the lines of these rows and removals, including LF'),
  crc32: Type.String({ pattern: '^[0-9a-f]{8}$', description: 'the CRC-32 of these lines' }),
};
export const FEED_CHECKPOINT = namedObject('FeedCheckpoint', 'a control line between changes', {
  checkpoint: object('how far the response has come', TALLY),
});
const MORE = Type.Boolean({
  description: 'true: the server stopped, although the response was to go on. Continue with the cursor',
});
export const FEED_END = namedObject('FeedEnd', 'the last line of a response that was not cut', {
  end: object('what the response has sent', { ...TALLY, more: Type.Optional(MORE) }),
});
export const REMOVED = namedObject(
  'Removed',
  'a row that no longer exists, or no longer has the values of the filter',
  { removed: object('a key', { id: Type.Unknown({ description: 'the key, as the rows show theirs' }) }) },
);

/** What the control lines of a feed have beside the sums of its encoder. */
interface FeedState {
  readonly removed: number;
  readonly isUpToDate: boolean;
  /** The last cursor that was not too long. A response may always be repeated from an earlier place. */
  readonly cursor: string;
  /** Whether the response ends although its reader asked for more. */
  readonly isCutShort: boolean;
}

type FeedPosition = Sums & Omit<FeedState, 'isCutShort'>;

function tallyOf({ cursor, isUpToDate: upToDate, removed, rows, bytes, crc32 }: FeedPosition) {
  return { cursor, upToDate, rows, removed, bytes, crc32 };
}

/** A checkpoint, LF included. */
export function checkpointLine(at: FeedPosition): string {
  return `${JSON.stringify({ checkpoint: tallyOf(at) })}\n`;
}

/** The control lines of a feed. `state` returns its present state. */
export function feedLines(state: () => FeedState): ControlForm {
  const stateAt = ({ cursor, ...sums }: EndTally) => ({
    ...state(),
    ...sums,
    ...(typeof cursor === 'string' && { cursor }),
  });
  return {
    checkpoint: (tally) => checkpointLine(stateAt(tally)),
    end: (tally) => {
      const { isCutShort: more, ...at } = stateAt(tally);
      return `${JSON.stringify({ end: { ...tallyOf(at), ...(more && { more }) } })}\n`;
    },
  };
}

/** The line of a removed row, by its id. The id has the form that rows show. */
export function removedLine(id: Bookmark): string {
  return `{"removed":${keyToJson(id)}}\n`;
}
