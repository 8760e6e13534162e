import type { ProblemDocument } from '../errors.ts';
import type { ArrowTable, ArrowWriter } from '../rows/arrow/writer.ts';
import type { RowEncoder } from '../rows/rows.ts';
import { ArrowEncoder } from '../stream/arrow-encoder.ts';
import { CheckpointEncoder, type CheckpointOptions } from '../stream/checkpoints.ts';
import { controlLines, type ControlForm } from '../stream/control-lines.ts';
import type { ChangesStart } from './changes-from.ts';
import type { StreamForm } from './form.ts';

/** An encoder that also writes how far the rows have come, so that a reader can verify and resume them. */
export interface ProvingEncoder extends RowEncoder {
  /** The rows written. */
  readonly rows: number;
  /** What says that all rows were written. */
  end(): string | Uint8Array;
  /** What says why no more rows come. Absent where nothing can say it. */
  error?(problem: ProblemDocument): string;
}

/** A stream as a table of Arrow. */
export interface ArrowForm {
  readonly contentType: string;
  readonly head: Uint8Array;
  readonly tail: '';
  readonly table: ArrowTable;
  readonly writer: () => ArrowWriter;
}

/** The encoder of a stream, which proves its rows if it has checkpoints or is a table of Arrow. */
export function encoderOf(
  form: ArrowForm | Pick<StreamForm, 'encoder'>,
  hasCheckpoints: boolean,
  changes: ChangesStart | null,
  options: Omit<CheckpointOptions, 'form' | 'start'> & { readonly start: string | null | undefined },
): { readonly encoder: RowEncoder; readonly proving: ProvingEncoder | null } {
  if ('table' in form) {
    const { table, writer } = form;
    const proving = new ArrowEncoder(writer(), table, {
      ...options,
      ...(changes && { changes: changes.cursor }),
    });
    return { encoder: proving, proving };
  }
  const encoder = form.encoder();
  if (!hasCheckpoints) return { encoder, proving: null };
  const proving = new CheckpointEncoder(encoder, { ...options, form: linesWith(changes) });
  return { encoder: proving, proving };
}

/** The control lines of a stream, whose end tells from where its changes follow. */
function linesWith(changes: ChangesStart | null): ControlForm {
  if (!changes) return controlLines;
  return { ...controlLines, end: (tally) => controlLines.end({ ...tally, changes: changes.cursor }) };
}
