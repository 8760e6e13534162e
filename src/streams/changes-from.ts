import type { Plan } from '../store/store.ts';

/** The header that says from where the changes of a set follow. */
export const CHANGES_HEADER = 'changes-from';

/** A place in the history of a set before it was read. */
export interface ChangesStart {
  /** As clients carry it. */
  readonly cursor: string;
  /** What a plan needs so that its reads see every change before the place. */
  readonly bounds: Pick<Plan, 'since' | 'identity'>;
}

/** Resolves to the present place in the history of a plan's rows. Null where changes are not told. */
export type ChangesFrom = (plan: Plan, signal: AbortSignal) => Promise<ChangesStart | null>;

/** The headers that tell a start. */
export function headersOf(start: ChangesStart | null): Readonly<Record<string, string>> {
  return start ? { [CHANGES_HEADER]: start.cursor } : {};
}
